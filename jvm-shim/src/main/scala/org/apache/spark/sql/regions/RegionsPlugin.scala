package org.apache.spark.sql.regions

import java.util.{Collections, Map => JMap}

import org.apache.spark.SparkContext
import org.apache.spark.api.plugin.{DriverPlugin, ExecutorPlugin, PluginContext, SparkPlugin}

/**
 * Starts the planner while the SparkContext comes up, before the first session exists. The session's part is
 * [[RegionsExtensions]], found through the service file. Executors need our operators only, no plugin.
 */
class RegionsPlugin extends SparkPlugin {
  override def executorPlugin(): ExecutorPlugin = null

  override def driverPlugin(): DriverPlugin = new DriverPlugin {
    private var context: Option[SparkContext] = None

    override def init(sc: SparkContext, pluginContext: PluginContext): JMap[String, String] = {
      if (Guard(sc.conf, "the plugin's start", false)(RegionsConf.isEnabled(sc.conf))) {
        context = Some(sc)
        Guard.run(sc.conf, "the plugin's start")(RegionsRuntime.start(sc))
      }
      Collections.emptyMap()
    }

    override def shutdown(): Unit = context.foreach(RegionsRuntime.stop)
  }
}
