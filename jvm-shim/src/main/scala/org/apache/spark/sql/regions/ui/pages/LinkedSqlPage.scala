package org.apache.spark.sql.regions.ui.pages

import jakarta.servlet.http.HttpServletRequest

import scala.xml.{Elem, Node, NodeSeq}

import org.apache.spark.sql.execution.ui.{ExecutionPage, SQLTab}
import org.apache.spark.sql.regions.Guard
import org.apache.spark.ui.{SparkUI, WebUIPage}

/**
 * Spark's page of a SQL execution with one more line, the way to ours. The page itself is Spark's, rendered by Spark; it has no
 * place for links of others, so its handler is exchanged by the methods that Spark attaches and detaches pages with.
 */
private[ui] final class LinkedSqlPage(sql: SQLTab, regions: RegionsTab) extends ExecutionPage(sql) {

  override def render(request: HttpServletRequest): Seq[Node] = {
    val plain = super.render(request)
    try linked(plain, request)
    catch {
      case error: Throwable if Guard.isOurs(error) =>
        Guard.warnOnce("the link on Spark's SQL page", error)
        plain
    }
  }

  private def linked(page: Seq[Node], request: HttpServletRequest): Seq[Node] =
    Option(request.getParameter("id")).flatMap(_.toLongOption).fold(page) { execution =>
      val what = regions.data.sums(execution).map(Labels.summary).getOrElse("nothing was decided on it")
      val ours = s"${regions.root(request)}/${RegionsTab.prefix}/execution/?id=$execution"
      val line = <p class="mb-2"><strong>Regions: </strong><a id="regions-link" href={ours}>{what}</a></p>
      LinkedSqlPage.beforeContent(page, line)
    }
}

private[ui] object LinkedSqlPage {

  /** Does nothing while Spark's tab is not there, or once it is done. */
  def install(ui: SparkUI, regions: RegionsTab): Boolean =
    ui.getTabs.collectFirst { case tab: SQLTab => tab }.map { sql =>
      sql.pages.find(page => page.getClass == classOf[ExecutionPage]).foreach { spark =>
        val ours: WebUIPage = new LinkedSqlPage(sql, regions)
        ours.prefix = spark.prefix
        ui.detachPage(spark)
        ui.attachPage(ours)
        sql.pages -= spark
        sql.pages += ours
      }
    }.isDefined

  /** Puts `line` at the start of the page's content: what follows the row with the title. */
  def beforeContent(page: Seq[Node], line: Node): NodeSeq = NodeSeq.fromSeq(page.map(inside(_, line)))

  private def inside(node: Node, line: Node): Node = node match {
    case div: Elem if (div \ "@class").text.contains("container-fluid") =>
      val (before, after) = div.child.span(child => (child \ "@class").text != "row")
      div.copy(child = before ++ after.headOption ++ line ++ after.drop(1))
    case elem: Elem if Set("html", "body")(elem.label) => elem.copy(child = elem.child.map(inside(_, line)))
    case other => other
  }
}
