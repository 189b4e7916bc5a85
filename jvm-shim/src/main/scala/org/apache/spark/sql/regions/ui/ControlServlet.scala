package org.apache.spark.sql.regions.ui

import java.nio.charset.StandardCharsets.UTF_8

import jakarta.servlet.http.{HttpServlet, HttpServletRequest, HttpServletResponse}

import org.apache.spark.SparkContext
import org.apache.spark.internal.config.UI.UI_KILL_ENABLED
import org.apache.spark.sql.regions.control.ControlDriver
import org.apache.spark.sql.regions.wire.Frames
import org.apache.spark.ui.JettyUtils

/** Commands for what runs, by POST to `/regions/control/` under Spark's UI, with its permission to modify; docs/control.md. */
final class ControlServlet(sc: SparkContext) extends HttpServlet {
  import ControlServlet._

  override def doPost(request: HttpServletRequest, response: HttpServletResponse): Unit = {
    val security = sc.env.securityManager
    val user = request.getRemoteUser
    val (status, text) =
      // A form on a page of somebody else's cannot send this type.
      if (!Option(request.getContentType).exists(_.startsWith("application/json")))
        415 -> error(s"Found the type ${request.getContentType}, expected application/json.")
      else if (!sc.conf.get(UI_KILL_ENABLED))
        403 -> error(s"Found ${UI_KILL_ENABLED.key}=false, expected true. Hint: it also allows to kill jobs")
      else if (!security.checkModifyPermissions(user))
        403 -> error(s"Found the user $user, expected one who may modify. Hint: spark.modify.acls")
      else {
        val body = new String(request.getInputStream.readNBytes(mostBytes), UTF_8)
        val seconds = Option(request.getParameter("seconds")).flatMap(_.toDoubleOption).getOrElse(0.0)
        200 -> ControlDriver.current.fold(error(ControlDriver.off))(_.ask(body, seconds))
      }
    response.setStatus(status)
    response.setContentType("application/json;charset=utf-8")
    response.getOutputStream.write(text.getBytes(UTF_8))
  }
}

object ControlServlet {
  private val mostBytes = 1 << 20

  def attach(sc: SparkContext): Unit = sc.ui.foreach { ui =>
    // The types of Jetty have other names in Spark's jars than in its classes' signatures, so that nobody can compile a call.
    val handler =
      JettyUtils.getClass.getMethod("createServletHandler", classOf[String], classOf[HttpServlet], classOf[String])
    val made = handler.invoke(JettyUtils, "/regions/control", new ControlServlet(sc), ui.basePath)
    ui.getClass.getMethod("attachHandler", handler.getReturnType).invoke(ui, made)
  }

  private def error(text: String): String = Frames.json.writeValueAsString(Map("error" -> text))
}
