package org.apache.spark.sql.regions.ui.pages

import jakarta.servlet.http.HttpServletRequest

import scala.xml.Node

import com.fasterxml.jackson.databind.node.ObjectNode
import org.json4s.JValue
import org.json4s.jackson.JsonMethods

import org.apache.spark.sql.execution.ui.SQLAppStatusStore
import org.apache.spark.sql.regions.Guard
import org.apache.spark.sql.regions.ui.Trees._
import org.apache.spark.sql.regions.ui.store.RegionsStore
import org.apache.spark.ui.{SparkUI, SparkUITab, UIUtils, WebUIPage}
import org.apache.spark.util.kvstore.KVStore

/** The tab in the UI of a running application, and of a past one in the History Server. */
final class RegionsTab(ui: SparkUI) extends SparkUITab(ui, RegionsTab.prefix) {
  override val name = "Regions"
  override def displayOrder: Int = 1

  private val kvstore: KVStore = ui.store.store
  private[pages] val data = new PageData(new RegionsStore(kvstore), new SQLAppStatusStore(kvstore), ui.store)

  Seq(
    new RegionsPage(this, "", "Regions", data.overview),
    new RegionsPage(this, "execution", "Regions of a query", data.execution),
    new RegionsPage(this, "cache", "Recycling cache", _ => data.cache),
    new RegionsPage(this, "graph", "Operator graph", _ => data.graph),
    new RegionsPage(this, "explorations", "Explorations", _ => data.explorations),
    new RegionsPage(this, "exploration", "Exploration", data.exploration),
    new RegionsPage(this, "running", "Running queries", _ => data.running),
    new RegionsPage(this, "lost", "Decisions that lost", _ => data.lost)
  ).foreach(attachPage)
  ui.attachTab(this)

  /** Where the UI is, also behind a proxy and in the History Server. */
  private[pages] def root(request: HttpServletRequest): String = UIUtils.prependBaseUri(request, basePath)
}

object RegionsTab {
  val prefix = "regions"

  /** Once for each UI. */
  def attach(ui: SparkUI): Option[RegionsTab] =
    if (ui.getTabs.exists(_.prefix == prefix)) None
    else Some(new RegionsTab(ui))
}

/**
 * A page of the tab: a JSON tree, which is served as it is, and stands in the page that [[View]] draws. A fault while it is made is a
 * sentence on the page.
 *
 * @param title where the tree has no `title` of its own
 * @param data throws [[RegionsPage.WrongRequest]], whose message is shown
 */
private[pages] final class RegionsPage(
    tab: RegionsTab,
    path: String,
    title: String,
    data: RegionsPage.Numbers => ObjectNode)
    extends WebUIPage(path) {

  override def renderJson(request: HttpServletRequest): JValue =
    JsonMethods.fromJsonNode(made(request).fold(error => record("error" -> error.toString), identity))

  override def render(request: HttpServletRequest): Seq[Node] = {
    val tree = made(request)
    val shown = tree.toOption.map(_.text("title")).filter(_.nonEmpty).getOrElse(title)
    UIUtils.headerSparkPage(request, shown, View(path, tab.root(request), tree), tab)
  }

  private def made(request: HttpServletRequest): Either[Throwable, ObjectNode] =
    try Right(data(RegionsPage.number(request, _)))
    catch {
      case wrong: RegionsPage.WrongRequest => throw wrong
      case error: Throwable if Guard.isOurs(error) =>
        Guard.warnOnce(s"the page $path of the Regions tab", error)
        Left(error)
    }
}

private[pages] object RegionsPage {

  /** Told by Spark as a bad request. */
  final class WrongRequest(message: String) extends IllegalArgumentException(message)

  /** The numbers of a request by their names. */
  type Numbers = String => Option[Long]

  private def number(request: HttpServletRequest, name: String): Option[Long] =
    Option(request.getParameter(name)).filter(_.nonEmpty)
      .map(_.toLongOption.getOrElse(throw new WrongRequest(s"$name should be a number")))
}
