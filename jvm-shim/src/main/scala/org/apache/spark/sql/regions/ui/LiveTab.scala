package org.apache.spark.sql.regions.ui

import org.apache.spark.SparkContext
import org.apache.spark.sql.regions.{Guard, RegionsConf}
import org.apache.spark.sql.regions.ui.pages.{LinkedSqlPage, RegionsTab}
import org.apache.spark.sql.regions.ui.store.RegionsStatusListener
import org.apache.spark.status.ElementTrackingStore

/** Puts the tab into the UI of a running application, where it has one. */
object LiveTab {
  def attach(sc: SparkContext): Unit = Guard.run(sc.conf, "the start of the Regions tab") {
    if (sc.conf.get(RegionsConf.controlEnabled)) ControlServlet.attach(sc)
    if (sc.conf.get(RegionsConf.uiEnabled)) sc.ui.foreach { ui =>
      sc.statusStore.store match {
        case store: ElementTrackingStore => RegionsTab.attach(ui).foreach { tab =>
            // Spark's SQL tab comes with the first session, which may be later than this.
            var linked = false
            val link = () => if (!linked) linked = LinkedSqlPage.install(ui, tab)
            sc.listenerBus.addToStatusQueue(new RegionsStatusListener(sc.conf, store, link))
          }
        case _ =>
      }
    }
  }
}
