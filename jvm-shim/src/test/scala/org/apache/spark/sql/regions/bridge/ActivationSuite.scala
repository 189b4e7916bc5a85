package org.apache.spark.sql.regions.bridge

import org.apache.spark.SparkConf
import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.regions.{RegionsConf, RegionsExtensions, Shim}

class ActivationSuite extends munit.FunSuite {
  private def conf(pairs: (String, String)*): SparkConf = new SparkConf(false).setAll(pairs)
  private val plugin = "org.apache.spark.sql.regions.RegionsPlugin"
  private val extension = "org.apache.spark.sql.regions.RegionsExtensions"

  private val table: Seq[(Seq[(String, String)], Boolean)] = Seq(
    Seq() -> false,
    Seq("spark.regions.enabled" -> "true") -> true,
    Seq("spark.plugins" -> s"a.B, $plugin") -> true,
    Seq("spark.sql.extensions" -> s"a.B,$extension") -> true,
    Seq("spark.plugins" -> plugin, "spark.regions.enabled" -> "false") -> false,
    Seq("spark.sql.extensions" -> extension, "spark.regions.enabled" -> "false") -> false,
    Seq("spark.plugins" -> "org.apache.spark.sql.regions.RegionsPluginX") -> false
  )

  table.foreach { case (pairs, expected) =>
    test(s"enabled: ${pairs.mkString(", ")} is $expected")(assertEquals(RegionsConf.isEnabled(conf(pairs: _*)),
        expected))
  }

  test("applied twice to one session's extensions, everything is registered once") {
    val extensions = new SparkSessionExtensions
    new RegionsExtensions()(extensions)
    new RegionsExtensions()(extensions)
    val field = classOf[SparkSessionExtensions].getDeclaredFields.find(_.getName.endsWith("injectedTableFunctions")).get
    field.setAccessible(true)
    assertEquals(
      field.get(extensions).asInstanceOf[scala.collection.Seq[_]].size, RegionsExtensions.tableFunctions.size)
  }

  test("values are validated when they are set, and startup keys cannot be set in a session") {
    val session = new SQLConf
    def message(key: String, value: String): String =
      intercept[IllegalArgumentException](session.setConfString(key, value)).getMessage
    assert(message("spark.regions.recycle.maxBytes", "-1").contains("must not be negative"))
    assert(message("spark.regions.recycle.window", "0").contains("greater than 0"))
    assert(message("spark.regions.recycle.firstUseOverhead", "1.5").contains("must be from 0 to 1"))
    assert(message("spark.regions.sources.racySeconds", "-1").contains("must not be negative"))
    assert(message("spark.regions.mode", "of").contains("apply, observe"))
    assert(message("spark.regions.recycle.namespace", "../x").contains("plain folder name"))
    session.setConfString("spark.regions.recycle.strategy", "Mine")
    assertEquals(session.getConf(RegionsConf.recycleStrategy), "mine")
    session.setConfString("spark.regions.recycle.strategy", "Always")
    assertEquals(session.getConf(RegionsConf.recycleStrategy), "always")
    assertEquals(session.getConf(RegionsConf.recycleMaxBytes), 10L << 30)
    assertEquals(session.getConf(RegionsConf.persistMaxBytes), None)
    val startup =
      RegionsConf.entries.map(_.key).filter(SQLConf.isStaticConfigKey).map(_.stripPrefix(RegionsConf.prefix)).toSet
    assertEquals(
      startup,
      Set(
        "enabled",
        "control.enabled",
        "control.pauseTimeout",
        "control.countWait",
        "planner.python",
        "planner.deadline",
        "planner.startupDeadline",
        "recycle.dir",
        "recycle.catalog",
        "recycle.namespace",
        "platforms.memory",
        "platforms.maxTempBytes",
        "price.coreHour",
        "price.gbMonth",
        "price.gbRead",
        "ui.enabled",
        "udf.trustedModules"
      )
    )
  }

  test("all keys are listed with their documentation") {
    val listed = new SQLConf().getAllDefinedConfs.filter(_._1.startsWith(RegionsConf.prefix))
    assertEquals(listed.map(_._1).toSet, RegionsConf.entries.map(_.key).toSet)
    assert(listed.forall(_._3.nonEmpty))
  }

  test("did you mean") {
    assertEquals(
      RegionsConf.unknown(Seq("spark.regions.recycle.maxbyte", "spark.regions.enabled", "spark.master",
          "spark.regions.zebra")),
      Seq(
        "spark.regions.recycle.maxbyte" -> Some("spark.regions.recycle.maxBytes"), "spark.regions.zebra" -> None)
    )
  }

  test("another Spark minor is refused with both versions") {
    assertEquals(Shim.unfit("4.3.1"), None)
    val refusal = Shim.unfit("4.30.0").get
    assertEquals(refusal.code, "WRONG_SPARK")
    assert(refusal.detail.contains("4.30.0") && refusal.detail.contains("4.3,"), refusal.detail)
  }
}
