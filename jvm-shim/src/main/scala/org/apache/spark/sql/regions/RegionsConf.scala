package org.apache.spark.sql.regions

import java.util.Locale
import java.util.concurrent.TimeUnit

import scala.jdk.CollectionConverters._
import scala.reflect.ClassTag

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.SparkConf
import org.apache.spark.internal.config.{ConfigEntry, OptionalConfigEntry, TypedConfigBuilder}
import org.apache.spark.network.util.ByteUnit
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.regions.wire.Frames

/**
 * Every `spark.regions.*` key, as `confs.json` has them, which is generated from spark_regions/conf.py. Keys that are read
 * once, at the start of the application, are static: Spark itself then refuses to change them in a running session,
 * instead of a silent no-op. Those that the shim reads have a name here.
 */
object RegionsConf {
  val prefix = "spark.regions."
  private val since = "0.1.0"

  /** Touching any member registers all entries; a method makes that intention visible. */
  def register(): Unit = ()

  private val timeUnits = Map("ms" -> TimeUnit.MILLISECONDS, "s" -> TimeUnit.SECONDS)
  private def lower(text: String): String = text.toLowerCase(Locale.ROOT)

  /** In the order of the documentation. */
  val entries: Seq[ConfigEntry[_]] = {
    val stream = getClass.getResourceAsStream("/org/apache/spark/sql/regions/confs.json")
    try Frames.json.readTree(stream).asScala.toSeq.map(registered)
    finally stream.close()
  }

  private def registered(key: JsonNode): ConfigEntry[_] = {
    def text(field: String): String = key.get(field).asText
    def texts(field: String): Seq[String] = key.get(field).asScala.map(_.asText).toSeq
    def created[T](conf: TypedConfigBuilder[T]): ConfigEntry[_] =
      if (text("default").isEmpty && text("kind") != "string") conf.createOptional
      else conf.createWithDefaultString(text("default"))
    val keyed = if (text("when") == "startup") SQLConf.buildStaticConf(text("key")) else SQLConf.buildConf(text("key"))
    val aliased = texts("aliases").foldLeft(keyed)(_.withAlternative(_))
    val builder = SparkMinor.unbound(aliased.doc(text("doc")).version(since))
    val least = key.get("minimum").asLong(Long.MinValue)
    val (choices, pattern, requirement) = (texts("choices").toSet, text("pattern"), text("requirement"))
    text("kind") match {
      case "bool" => created(builder.booleanConf)
      case "int" => created(builder.intConf.checkValue(_ >= least, requirement))
      case "share" => created(builder.doubleConf.checkValue(share => share >= 0 && share <= 1, requirement))
      case "number" => created(builder.doubleConf.checkValue(_ >= 0, requirement))
      case "time" => created(builder.timeConf(timeUnits(text("unit"))).checkValue(_ >= least, requirement))
      case "bytes" => created(builder.bytesConf(ByteUnit.BYTE).checkValue(_ >= least, requirement))
      // Only the planner knows what installed packages add.
      case "string" if key.get("open").asBoolean => created(builder.stringConf.transform(lower))
      case "string" if choices.nonEmpty => created(builder.stringConf.transform(lower).checkValues(choices))
      case "string" if pattern.nonEmpty => created(builder.stringConf.checkValue(_.matches(pattern), requirement))
      case "string" => created(builder.stringConf)
    }
  }

  private def named[T](name: String)(implicit kind: ClassTag[T]): ConfigEntry[T] = {
    val found = entries.find(_.key == prefix + name).getOrElse(throw new NoSuchElementException(prefix + name))
    require(found.defaultValue.forall(default => kind.unapply(default).isDefined), s"$prefix$name is not of type $kind")
    found.asInstanceOf[ConfigEntry[T]]
  }

  val enabled: ConfigEntry[Boolean] = named("enabled")
  val mode: ConfigEntry[String] = named("mode")
  val strict: ConfigEntry[Boolean] = named("strict")
  val plannerPython: ConfigEntry[String] = named("planner.python")
  val plannerDeadline: ConfigEntry[Long] = named("planner.deadline")
  val plannerStartupDeadline: ConfigEntry[Long] = named("planner.startupDeadline")
  val recycleEnabled: ConfigEntry[Boolean] = named("recycle.enabled")
  val recycleDir: ConfigEntry[String] = named("recycle.dir")
  val recycleMaxBytes: ConfigEntry[Long] = named("recycle.maxBytes")
  val recycleTtl: ConfigEntry[Long] = named("recycle.ttl")
  val recycleStrategy: ConfigEntry[String] = named("recycle.strategy")
  val recycleWindow: ConfigEntry[Int] = named("recycle.window")
  val recycleFirstUseOverhead: ConfigEntry[Double] = named("recycle.firstUseOverhead")
  val recycleNamespace: ConfigEntry[String] = named("recycle.namespace")
  val recycleFloatAggregates: ConfigEntry[Boolean] = named("recycle.floatAggregates")
  val recycleRowOrder: ConfigEntry[String] = named("recycle.rowOrder")
  val sourcesVerify: ConfigEntry[String] = named("sources.verify")
  val sourcesRacySeconds: ConfigEntry[Int] = named("sources.racySeconds")
  val verifyFraction: ConfigEntry[Double] = named("verify.fraction")
  val sourcesWritten: ConfigEntry[Boolean] = named("sources.written")
  val sharingEnabled: ConfigEntry[Boolean] = named("sharing.enabled")
  val sweepsEnabled: ConfigEntry[Boolean] = named("sweeps.enabled")
  val codeReuse: ConfigEntry[Boolean] = named("codeReuse.enabled")
  val workflowEnabled: ConfigEntry[Boolean] = named("workflow.enabled")
  val skewEnabled: ConfigEntry[Boolean] = named("skew.enabled")
  val skewStrategy: ConfigEntry[String] = named("skew.strategy")
  val skewKeys: ConfigEntry[Boolean] = named("skew.keys")
  val skewFloatAggregates: ConfigEntry[Boolean] = named("skew.floatAggregates")
  val platforms: ConfigEntry[String] = named("platforms")
  val platformsMaxInputBytes: ConfigEntry[Long] = named("platforms.maxInputBytes")
  val platformsMaxResultBytes: ConfigEntry[Long] = named("platforms.maxResultBytes")
  val platformsFloatSums: ConfigEntry[Boolean] = named("platforms.floatSums")
  val platformsTimeout: ConfigEntry[Long] = named("platforms.timeout")
  val persistEnabled: ConfigEntry[Boolean] = named("persist.enabled")
  val persistMaxBytes: ConfigEntry[Option[Long]] = named("persist.maxBytes")
  val controlEnabled: ConfigEntry[Boolean] = named("control.enabled")
  val controlPauseTimeout: ConfigEntry[Long] = named("control.pauseTimeout")
  val replaceFunctions: ConfigEntry[Boolean] = named("control.replaceFunctions")
  val onBadRow: ConfigEntry[String] = named("control.onBadRow")
  val maxBadRows: ConfigEntry[Option[Int]] = named("control.maxBadRows")
  val quarantinePath: ConfigEntry[String] = named("control.quarantinePath")
  val splitBatches: ConfigEntry[Boolean] = named("control.splitBatches")
  val explainFormat: ConfigEntry[String] = named("explain.format")
  val uiEnabled: ConfigEntry[Boolean] = named("ui.enabled")

  private val keys: Set[String] = entries.flatMap(entry => entry.key :: entry.alternatives).toSet

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
