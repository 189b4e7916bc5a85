package org.apache.spark.sql.regions.ui.pages

import jakarta.servlet.http.HttpServletRequest

import scala.xml.{Node, NodeSeq, Text}

import com.fasterxml.jackson.databind.node.ObjectNode
import org.json4s.JValue
import org.json4s.jackson.JsonMethods

import org.apache.spark.sql.execution.ui.SQLAppStatusStore
import org.apache.spark.sql.regions.Guard
import org.apache.spark.sql.regions.bridge.Frames
import org.apache.spark.sql.regions.ui.picture.PictureScript
import org.apache.spark.sql.regions.ui.store.RegionsStore
import org.apache.spark.status.ElementTrackingStore
import org.apache.spark.ui.{SparkUI, SparkUITab, UIUtils, WebUIPage}
import org.apache.spark.util.kvstore.KVStore

/** The tab in the UI of a running application, and of a past one in the History Server. */
final class RegionsTab(ui: SparkUI) extends SparkUITab(ui, RegionsTab.prefix) {
  override val name = "Regions"
  override def displayOrder: Int = 1

  private val kvstore: KVStore = ui.store.store
  val store = new RegionsStore(kvstore)
  private[pages] val facts = new Facts(store, new SQLAppStatusStore(kvstore), ui.store)

  attachPage(new OverviewPage(this))
  attachPage(new QueryPage(this))
  attachPage(new CachePage(this))
  attachPage(new GraphPage(this))
  attachPage(new LostPage(this))
  ui.attachTab(this)
}

object RegionsTab {
  val prefix = "regions"

  /** Once for each UI, and only where there is Spark's own store behind it. */
  def attach(ui: SparkUI): Option[RegionsTab] =
    if (ui.getTabs.exists(_.prefix == prefix)) None
    else ui.store.store match {
      case _: ElementTrackingStore | _: KVStore => Some(new RegionsTab(ui))
      case _ => None
    }
}

/** A page of the tab: a JSON tree, and HTML made from it. A fault while it is made is a sentence on the page. */
private[pages] abstract class FactsPage(tab: RegionsTab, path: String, title: String) extends WebUIPage(path) {

  /** @throws FactsPage.WrongRequest its message is shown */
  protected def facts(request: HttpServletRequest): ObjectNode

  protected def content(facts: ObjectNode, links: Links): NodeSeq

  protected def titleOf(facts: ObjectNode): String = title

  final override def renderJson(request: HttpServletRequest): JValue =
    guarded(JsonMethods.fromJsonNode(facts(request)))(error =>
      JsonMethods.fromJsonNode(Frames.json.createObjectNode().put("error", error.toString)))

  final override def render(request: HttpServletRequest): Seq[Node] = {
    val links = new Links(request, tab)
    val (shown, body) = guarded {
      val known = facts(request)
      (titleOf(known), content(known, links))
    } { error =>
      val told: NodeSeq =
        <p class="regions-bad" role="alert">This page could not be made: {error.toString}. The log of the driver (of
        the History Server for a past application) has more; the application itself is not concerned.</p>
      (title, told)
    }
    UIUtils.headerSparkPage(
      request, shown, PictureScript.style ++ navigation(links) ++ body ++ PictureScript.script, tab)
  }

  private def guarded[T](made: => T)(otherwise: Throwable => T): T =
    try made
    catch {
      case wrong: FactsPage.WrongRequest => throw wrong
      case error: Throwable if Guard.isOurs(error) =>
        Guard.warnOnce(s"the page $path of the Regions tab", error)
        otherwise(error)
    }

  private def navigation(links: Links): Node =
    <nav aria-label="Regions pages"><ul class="nav nav-pills mb-3">{
      FactsPage.all.map { case (target, name) =>
        val here = target == path
        <li class="nav-item"><a class={if (here) "nav-link active py-1" else "nav-link py-1"} href={links.page(target)}
            aria-current={if (here) Some(Text("page")) else None}>{name}</a></li>
      }
    }</ul></nav>

  protected def number(request: HttpServletRequest, name: String): Option[Long] =
    Option(request.getParameter(name)).filter(_.nonEmpty).map { text =>
      text.toLongOption.getOrElse(throw new FactsPage.WrongRequest(s"$name should be a number"))
    }
}

private[pages] object FactsPage {

  /** Told by Spark as a bad request. */
  final class WrongRequest(message: String) extends IllegalArgumentException(message)

  val all: Seq[(String, String)] =
    Seq("" -> "Overview", "cache" -> "Recycling cache", "graph" -> "Operator graph", "lost" -> "Decisions that lost")
}

/** Where things are, also behind a proxy and in the History Server. */
private[pages] final class Links(request: HttpServletRequest, tab: RegionsTab) {
  private val root = UIUtils.prependBaseUri(request, tab.basePath)

  def page(path: String): String = s"$root/${RegionsTab.prefix}/" + (if (path.isEmpty) "" else s"$path/")
  def json(path: String, parameters: String = ""): String = s"${page(path)}json" + parameters
  def sql(execution: Long): String = s"$root/SQL/execution/?id=$execution"
  def stage(id: Long, attempt: Long): String = s"$root/stages/stage/?id=$id&attempt=$attempt"

  /** Our page of a query, by the execution where it has one. */
  def query(query: Long, execution: Long): String =
    page("execution") + (if (execution >= 0) s"?id=$execution" else s"?query=$query")

  def entry(name: String): String = page("cache") + s"#entry-$name"

  def toQuery(query: Long, execution: Long): NodeSeq =
    if (query < 0) NodeSeq.Empty else <a href={this.query(query, execution)}>{query.toString}</a>

  def toSql(execution: Long): NodeSeq =
    if (execution < 0) NodeSeq.Empty else <a href={sql(execution)}>{execution.toString}</a>

  def toJson(path: String, parameters: String = ""): Node =
    <p class="mt-3"><a href={json(path, parameters)}>The same as JSON</a></p>
}
