package org.apache.spark.sql.regions

import java.util.Locale
import java.util.concurrent.TimeUnit

import org.apache.spark.SparkConf
import org.apache.spark.internal.config.{ConfigBindingPolicy, ConfigBuilder, ConfigEntry, OptionalConfigEntry}
import org.apache.spark.network.util.ByteUnit
import org.apache.spark.sql.internal.SQLConf

/**
 * Every `spark.regions.*` key. Keys that are read once, at the start of the application, are static: Spark itself then
 * refuses to change them in a running session, instead of a silent no-op.
 */
object RegionsConf {
  val prefix = "spark.regions."
  private val since = "0.1.0"

  /** Touching any member registers all entries; a method makes that intention visible. */
  def register(): Unit = ()

  // A view that was created with other values must not bring them back, hence the binding policy.
  private def describe(builder: ConfigBuilder, doc: String): ConfigBuilder =
    builder.doc(doc).version(since).withBindingPolicy(ConfigBindingPolicy.NOT_APPLICABLE)
  private def startup(key: String, doc: String): ConfigBuilder = describe(SQLConf.buildStaticConf(prefix + key), doc)
  private def runtime(key: String, doc: String): ConfigBuilder = describe(SQLConf.buildConf(prefix + key), doc)
  private val lower: String => String = _.toLowerCase(Locale.ROOT)

  val enabled: ConfigEntry[Boolean] = startup(
    "enabled",
    "Whether spark_regions observes and changes the queries of this application. Where the plugin or the extension is " +
      "named in spark.plugins or spark.sql.extensions, that counts as true unless this key says false."
  )
    .booleanConf.createWithDefault(false)

  val mode: ConfigEntry[String] = runtime("mode",
    "'apply' changes plans; 'observe' only records what was run and what would have been decided.")
    .stringConf.transform(lower).checkValues(Set("apply", "observe")).createWithDefault("apply")

  val strict: ConfigEntry[Boolean] = runtime("strict",
    "Raise errors of spark_regions itself instead of falling back to the plain plan. For tests.")
    .booleanConf.createWithDefault(false)

  val plannerPython: ConfigEntry[String] = startup(
    "planner.python",
    "Python executable of the planner process. Empty: PYSPARK_DRIVER_PYTHON, PYSPARK_PYTHON, " +
      "spark.pyspark.driver.python, spark.pyspark.python, the Python that started this driver, or python3."
  )
    .stringConf.createWithDefault("")

  val plannerDeadline: ConfigEntry[Long] = startup(
    "planner.deadline",
    "The longest time that planning a query waits for the planner; later answers are dropped. Where decisions of late " +
      "have saved more than ten times as long, a tenth of that, 2s at most. 0 never waits."
  )
    .timeConf(TimeUnit.MILLISECONDS).checkValue(_ >= 0, "must not be negative").createWithDefaultString("200ms")

  val plannerStartupDeadline: ConfigEntry[Long] = startup("planner.startupDeadline",
    "The longest time that the first queries wait for the planner process to come up.")
    .timeConf(TimeUnit.MILLISECONDS).checkValue(_ >= 0, "must not be negative").createWithDefaultString("5000ms")

  val udfTrustedModules: ConfigEntry[String] = startup(
    "udf.trustedModules",
    "Python modules, separated by commas, whose functions the user vouches for: they depend on their arguments alone."
  )
    .stringConf.createWithDefault("")

  val recycleEnabled: ConfigEntry[Boolean] = runtime("recycle.enabled",
    "Whether results are stored for, and loaded from, other queries and applications.")
    .booleanConf.createWithDefault(true)

  val recycleDir: ConfigEntry[String] = startup("recycle.dir",
    "Folder of stored results, on any Hadoop file system. Empty: ~/.spark_regions.")
    .stringConf.createWithDefault("")

  val recycleCatalog: ConfigEntry[String] = startup("recycle.catalog",
    "SQLAlchemy URL of the catalog. Empty: an SQLite file beside the store.")
    .stringConf.createWithDefault("")

  val recycleMaxBytes: ConfigEntry[Long] = runtime("recycle.maxBytes",
    "The most bytes that stored results of a namespace take; a hard limit.")
    .bytesConf(ByteUnit.BYTE).checkValue(_ >= 0, "must not be negative").createWithDefaultString("10g")

  val recycleTtl: ConfigEntry[Long] = runtime("recycle.ttl",
    "Stored results that were not used for so long are evicted.")
    .timeConf(TimeUnit.SECONDS).checkValue(_ >= 0, "must not be negative").createWithDefaultString("7d")

  val recycleStrategy: ConfigEntry[String] = runtime(
    "recycle.strategy",
    "How materialization points are chosen: 'markov', 'maxbenefit', 'latest', 'always' (every eligible point; for " +
      "tests) or 'off'."
  )
    .stringConf.transform(lower).checkValues(Set("markov", "maxbenefit", "latest", "always", "off"))
    .createWithDefault("markov")

  val recycleWindow: ConfigEntry[Int] = runtime("recycle.window",
    "Number of recent runs from which expected uses are estimated.")
    .intConf.checkValue(_ > 0, "must be greater than 0").createWithDefault(20)

  val recycleFirstUseOverhead: ConfigEntry[Double] = runtime(
    "recycle.firstUseOverhead",
    "A DataFrame that the program still holds is stored while the first query built on it runs, before any use of it " +
      "is known, if that adds at most this share to the query's own work; else it is given up half-way. 0 waits for " +
      "the second use."
  )
    .doubleConf.checkValue(share => share >= 0 && share <= 1, "must be from 0 to 1").createWithDefault(0.1)

  val recycleNamespace: ConfigEntry[String] = startup("recycle.namespace",
    "Entries are shared inside a namespace only. Empty: the Spark user.")
    .stringConf.checkValue(name => !name.contains("/") && !name.contains("\\") && !name.startsWith("."),
      "must be a plain folder name").createWithDefault("")

  val recycleFloatAggregates: ConfigEntry[Boolean] = runtime("recycle.floatAggregates",
    "Also recycle sums and averages of floating-point values, whose last digits differ between two plain runs.")
    .booleanConf.createWithDefault(false)

  val recycleRowOrder: ConfigEntry[String] = runtime(
    "recycle.rowOrder",
    "'plain': rows come in the order in which plain Spark gives them, also where no ORDER BY says which; 'any': more is " +
      "read back, and such rows may come in another order."
  )
    .stringConf.transform(lower).checkValues(Set("plain", "any")).createWithDefault("plain")

  val sourcesVerify: ConfigEntry[String] = runtime(
    "sources.verify",
    "How a source file is known again: 'listing' (path, length, time, and an object store's tag) or 'footer' (also a " +
      "file system's checksum, the footer of Parquet and ORC, or the content of small files of other formats)."
  )
    .stringConf.transform(lower).checkValues(Set("listing", "footer")).createWithDefault("listing")

  val sourcesRacySeconds: ConfigEntry[Int] = runtime(
    "sources.racySeconds",
    "Nothing is stored of what is read from files younger than this: they may be written again without their time " +
      "changing. At least as coarse as the file system's times, plus what its clock is behind the driver's. 0: never."
  )
    .intConf.checkValue(_ >= 0, "must not be negative").createWithDefault(2)

  val sharingEnabled: ConfigEntry[Boolean] = runtime(
    "sharing.enabled",
    "Whether a subplan that stands in several places of a query, perhaps with other columns and filters in each, is " +
      "computed once where that pays for the shuffle that it takes: judged by how often Spark computed it in an " +
      "earlier run, or by the size of its sources."
  )
    .booleanConf.createWithDefault(true)

  val workflowEnabled: ConfigEntry[Boolean] = runtime(
    "workflow.enabled",
    "Whether the queries of an application's last run are looked at as a whole, so that a result that later queries " +
      "will use is kept from its first use until its last one."
  )
    .booleanConf.createWithDefault(true)

  val skewEnabled: ConfigEntry[Boolean] = runtime(
    "skew.enabled",
    "Whether the tasks of a skewed reduce stage are arranged otherwise where Spark's adaptive execution leaves them " +
      "alone. Nothing happens without adaptive execution."
  )
    .booleanConf.createWithDefault(true)

  val skewStrategy: ConfigEntry[String] = runtime(
    "skew.strategy",
    "When a stage is arranged otherwise: 'cost' (the predicted time is worth it) or 'always' (sizes alone count, " +
      "however small; for tests)."
  )
    .stringConf.transform(lower).checkValues(Set("cost", "always")).createWithDefault("cost")

  val skewKeys: ConfigEntry[Boolean] = runtime(
    "skew.keys",
    "Whether the keys of every sixteenth row of skewed partitions are counted, and the heaviest shown by their values."
  )
    .booleanConf.createWithDefault(true)

  val persistEnabled: ConfigEntry[Boolean] = runtime("persist.enabled",
    "Whether results are persisted in Spark's block manager for later queries of the session.")
    .booleanConf.createWithDefault(true)

  val persistMaxBytes: OptionalConfigEntry[Long] = runtime("persist.maxBytes",
    "The most bytes that persisted results take. Undefined: a quarter of the storage memory.")
    .bytesConf(ByteUnit.BYTE).checkValue(_ >= 0, "must not be negative").createOptional

  val explainFormat: ConfigEntry[String] = runtime("explain.format",
    "Form of the section that EXPLAIN shows: 'text', 'json' or 'off'.")
    .stringConf.transform(lower).checkValues(Set("text", "json", "off")).createWithDefault("text")

  val uiEnabled: ConfigEntry[Boolean] = startup(
    "ui.enabled",
    "Whether what is decided, and what comes of it, is shown in a tab of Spark's UI and written to the event log."
  )
    .booleanConf.createWithDefault(true)

  /** In the order of the documentation. */
  val entries: Seq[ConfigEntry[_]] = Seq(
    enabled,
    mode,
    strict,
    plannerPython,
    plannerDeadline,
    plannerStartupDeadline,
    udfTrustedModules,
    recycleEnabled,
    recycleDir,
    recycleCatalog,
    recycleMaxBytes,
    recycleTtl,
    recycleStrategy,
    recycleWindow,
    recycleFirstUseOverhead,
    recycleNamespace,
    recycleFloatAggregates,
    recycleRowOrder,
    sourcesVerify,
    sourcesRacySeconds,
    sharingEnabled,
    workflowEnabled,
    skewEnabled,
    skewStrategy,
    skewKeys,
    persistEnabled,
    persistMaxBytes,
    explainFormat,
    uiEnabled
  )

  private val keys: Set[String] = entries.map(_.key).toSet

  def isStartup(entry: ConfigEntry[_]): Boolean = SQLConf.isStaticConfigKey(entry.key)

  /** The default as a user would write it, empty where there is none. */
  def defaultString(entry: ConfigEntry[_]): String = entry match {
    case optional: OptionalConfigEntry[_] => optional.defaultValue.map(_.toString).getOrElse("")
    case other => other.defaultValueString
  }

  /** What the user asked for: the key itself, or else the naming of one of our classes in Spark's own lists. */
  def isEnabled(conf: SparkConf): Boolean = conf.getOption(enabled.key) match {
    case Some(value) => value.trim.toBooleanOption.getOrElse(
        throw new IllegalArgumentException(s"${enabled.key} should be boolean, but was $value"))
    case None => names(conf, "spark.plugins", classOf[RegionsPlugin]) ||
      names(conf, "spark.sql.extensions", classOf[RegionsExtensions])
  }

  /** Asked where something has already gone wrong, so it must not fail itself. */
  def isStrict(conf: SparkConf): Boolean = conf.get(strict.key, "false").trim.equalsIgnoreCase("true")

  private def names(conf: SparkConf, list: String, named: Class[_]): Boolean =
    conf.get(list, "").split(",").exists(_.trim == named.getName)

  /** Keys under our prefix that do not exist, each with the nearest one that does, if any is near. */
  def unknown(given: Iterable[String]): Seq[(String, Option[String])] =
    given.filter(key => key.startsWith(prefix) && !keys(key)).toSeq.distinct.sorted.map(key => key -> nearest(key))

  private def nearest(key: String): Option[String] = {
    val (best, distance) = keys.toSeq.sorted.map(known => known -> edits(lower(key), lower(known))).minBy(_._2)
    if (distance <= math.max(2, (key.length - prefix.length) / 3)) Some(best) else None
  }

  /** Levenshtein distance, one row of the table at a time. */
  private def edits(left: String, right: String): Int =
    left.indices.foldLeft((0 to right.length).toVector) { (row, i) =>
      right.indices.foldLeft(Vector(i + 1)) { (next, j) =>
        next :+ Seq(next(j) + 1, row(j + 1) + 1, row(j) + (if (left(i) == right(j)) 0 else 1)).min
      }
    }.last

  def unknownMessage(key: String, suggestion: Option[String]): String =
    s"Unknown key $key." + suggestion.map(known => s" Hint: did you mean $known?").getOrElse("")
}
