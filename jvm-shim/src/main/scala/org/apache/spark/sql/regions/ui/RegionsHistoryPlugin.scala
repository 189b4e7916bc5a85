package org.apache.spark.sql.regions.ui

import org.apache.spark.SparkConf
import org.apache.spark.scheduler.SparkListener
import org.apache.spark.sql.regions.Guard
import org.apache.spark.sql.regions.ui.pages.{LinkedSqlPage, RegionsTab}
import org.apache.spark.sql.regions.ui.store.{RegionsStatusListener, RegionsStore}
import org.apache.spark.status.{AppHistoryServerPlugin, ElementTrackingStore}
import org.apache.spark.ui.SparkUI

/** The tab in the History Server, for applications in whose event log there is anything of ours. Found by the service file. */
class RegionsHistoryPlugin extends AppHistoryServerPlugin {

  override def createListeners(conf: SparkConf, store: ElementTrackingStore): Seq[SparkListener] =
    Guard(conf, "the History Server's listener", Seq.empty[SparkListener])(Seq(new RegionsStatusListener(conf, store)))

  override def setupUI(ui: SparkUI): Unit = Guard.run(ui.conf, "the History Server's tab") {
    if (!new RegionsStore(ui.store.store).isEmpty) {
      RegionsTab.attach(ui).foreach(tab => LinkedSqlPage.install(ui, tab))
    }
  }

  /** After Spark's SQL tab, on whose page there is to be a link. */
  override def displayOrder: Int = 1
}
