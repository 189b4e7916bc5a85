package org.apache.spark.sql.regions.profile

import java.nio.file.Files
import java.util.{Map => JMap}
import java.util.concurrent.{ConcurrentLinkedQueue, CopyOnWriteArrayList}
import java.util.concurrent.atomic.AtomicLong

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.{DataFrame, SparkSession}
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.functions._
import org.apache.spark.sql.regions._
import org.apache.spark.sql.regions.wire.Frames

/** Executes queries and looks at what the listener says of them; rows are compared with counts that Spark gives. */
class ExecutedQuerySuite extends munit.FunSuite {
  private val registry = new QueryRegistry(100)
  private val events = new ConcurrentLinkedQueue[JsonNode]()
  private val ended = new CopyOnWriteArrayList[(Long, Boolean)]()
  private val numbers = new AtomicLong()
  private var spark: SparkSession = _
  private var listener: ProfileListener = _
  private var folder: String = _

  /** Numbers the nodes of the optimized plan and names each by its canonical text: enough for the profiler. */
  private final class Numbered(plan: LogicalPlan) extends SignedPlan {
    private val found = mutable.ArrayBuffer.empty[SignedNode]
    private def number(node: LogicalPlan): Int = {
      val id = found.size
      found += null
      val children = node.children.map(number)
      val digest = node.canonicalized.hashCode.toHexString
      found(id) = SignedNode(id, node, children, Right(Signature(digest, Nil, Nil, digest)), None)
      id
    }
    number(plan)
    override val nodes: IndexedSeq[SignedNode] = found.toVector
    override def expressions: Map[String, Seq[String]] = Map.empty
    override def conjunctColumns: Map[String, Seq[String]] = Map.empty
    override def equal: Map[String, (String, String)] = Map.empty
    override def predicates: Seq[wire.Predicate] = Nil
    override def inputs(node: SignedNode): Seq[InputListing] = Nil
    override def over(
        node: SignedNode,
        source: LogicalPlan,
        stored: Seq[(String, Attribute)],
        storedConjuncts: Set[String]): Either[Refusal, LogicalPlan] = Left(Refusal("NOT_HERE"))
  }

  private object Sign extends Rule[LogicalPlan] {
    override def apply(plan: LogicalPlan): LogicalPlan = {
      registry.register(numbers.incrementAndGet(), new Numbered(plan), Nil, Nil)
      plan
    }
  }

  override def beforeAll(): Unit = {
    spark = LocalSpark.session(_.injectPreCBORule(_ => Sign), "spark.sql.autoBroadcastJoinThreshold" -> "-1")
    listener = new ProfileListener(registry, event => events.add(Frames.tree(event)))
    listener.ends.add(end => ended.add(end.query -> end.failed))
    spark.sparkContext.addSparkListener(listener)
    folder = Files.createTempDirectory("profile").toString
    spark.range(0, 10000, 1, 4).select(col("id"), (col("id") % 100).as("k"), (col("id") * 3).as("v"))
      .write.parquet(s"$folder/facts")
    spark.range(0, 100, 1, 2).select(col("id").as("k"), concat(lit("n"), col("id")).as("name"))
      .write.parquet(s"$folder/names")
  }

  override def afterAll(): Unit = if (listener != null) spark.sparkContext.removeSparkListener(listener)

  private def facts: DataFrame = spark.read.parquet(s"$folder/facts")
  private def names: DataFrame = spark.read.parquet(s"$folder/names")

  /** The last event of what `run` executes. */
  private def executed(run: => Unit): JsonNode = {
    spark.sparkContext.listenerBus.waitUntilEmpty()
    events.clear()
    run
    spark.sparkContext.listenerBus.waitUntilEmpty()
    assert(!events.isEmpty, "nothing was observed")
    events.asScala.toSeq.last
  }

  private def rows(event: JsonNode, operator: String): Seq[Option[Long]] = nodes(event)
    .filter(_.get("operator").asText.startsWith(operator))
    .map(node => Option(node.get("rows")).map(_.asLong))

  private def nodes(event: JsonNode): Seq[JsonNode] = event.get("nodes").elements.asScala.toSeq
  private def seconds(event: JsonNode): Seq[Double] =
    nodes(event).flatMap(node => Option(node.get("seconds"))).map(_.asDouble)

  test("filter, join and aggregate: rows are exact, seconds add up to the tasks' seconds") {
    val event = executed(facts.filter(col("v") < 15000).join(names, "k").groupBy("name").agg(sum("v")).collect())
    assertEquals(event.get("outcome").asText, "ok")
    assertEquals(rows(event, "Aggregate"), Seq(Some(100L)))
    assertEquals(rows(event, "Join"), Seq(Some(5000L)))
    assertEquals(rows(event, "Filter").toSet, Set(Option(5000L), Option(100L)))
    assert(event.get("taskSeconds").asDouble > 0)
    assertEqualsDouble(seconds(event).sum, event.get("taskSeconds").asDouble, 1e-6)
  }

  test("what each stage took is told, with the rows that went through its operators") {
    val busy = udf((id: Long) => { Thread.sleep(1); id % 7 })
    val event = executed(facts.where("id < 200").groupBy(busy(col("id")).as("b")).agg(sum("v")).collect())
    assertEquals(event.path("fitted").asDouble, 0.0)
    val longest = event.get("stages").elements.asScala.toSeq.head
    assert(longest.get("seconds").asDouble > 0.15, longest.toString)
    assert(longest.get("cpuSeconds").asDouble < longest.get("seconds").asDouble, "it slept")
    val rows = longest.get("rows")
    assert(rows.get("FilterExec").asDouble >= 200)
    assertEquals(rows.get("FilterExec"), rows.get("FileSourceScanExec"))
    assert(rows.has("ShuffleExchangeExec") && rows.has("HashAggregateExec"))
    assert(!rows.has("ShuffleExchangeExec.read"), "it wrote what the next stage read")
    assert(longest.get("expressionMicros").asDouble > 100, "a function on each row")
    assert(event.get("stages").elements.asScala.forall(_.get("seconds").asDouble >= 0.02))
  }

  test("of a failed query no stage is told") {
    val broken =
      udf((id: Long) => { Thread.sleep(1); if (id == 199) throw new IllegalStateException("broken") else id })
    val event = executed(intercept[Exception](facts.where("id < 200").select(broken(col("id"))).collect()))
    assertEquals(event.path("stages").size, 0)
  }

  test("texts are as wide as a shuffle counted them, in other operators, too") {
    val wide = facts.withColumn("text", concat(lit("x" * 500), col("k"))).where("length(text) > 9")
    val event = executed(wide.join(names, "k").select("text", "name").collect())
    val top = nodes(event).head
    assertEquals(top.get("rows").asLong, 10000L)
    val counted = 10000L * 500
    assert(top.get("bytes").asLong > counted && top.get("bytes").asLong < 1.2 * counted, top.toString)
  }

  test("a projection passes its child's rows; bytes are known where rows are") {
    val event = executed(facts.select((col("v") + 1).as("w")).where("w > 100").collect())
    val count = facts.where("v + 1 > 100").count()
    assert(rows(event, "Project").forall(_.contains(count)), rows(event, "Project"))
    nodes(event).filter(_.has("rows")).foreach(node => assert(node.get("bytes").asLong > 0, node.toString))
  }

  private def one(event: JsonNode, operator: String): JsonNode =
    nodes(event).filter(_.get("operator").asText.startsWith(operator)).head

  test("regions are the stages that ran, and exchanges what those wrote, not what names suggest") {
    val shuffled = executed(facts.join(names, "k").groupBy("name").agg(sum("v")).collect())
    val scans = nodes(shuffled).filter(_.get("operator").asText.startsWith("Scan parquet"))
    assertEquals(scans.map(_.get("operator").asText).toSet, Set("Scan parquet facts", "Scan parquet names"))
    val below = nodes(shuffled).filter(_.path("exchange").asText == "shuffle").map(_.get("region").asInt)
    assert(nodes(shuffled).filter(_.has("exchange")).forall(_.get("exchangeBytes").asLong > 0))
    assertEquals(below.size, 3, "two inputs of the join, and the aggregate's")
    assertEquals(below.toSet.size, 3)
    val join = nodes(shuffled).find(_.get("operator").asText == "Join").get
    val inputs = join.get("children").elements.asScala.map(_.asInt).toSet
    assertEquals(
      nodes(shuffled).filter(node => inputs(node.get("id").asInt)).map(_.path("exchange").asText),
      Seq("shuffle", "shuffle"),
      "at the join's own inputs, where projections and filters are one operator"
    )
    assertEquals(one(shuffled, "Join").get("region").asInt, below.max, "the states are made where the join is")
    assertEquals(one(shuffled, "Aggregate").get("region").asInt, below.max + 1)

    val event = executed(facts.join(broadcast(names), "k").where("v > 5").collect())
    val (joined, small) = (one(event, "Join"), nodes(event).filter(_.path("exchange").asText == "broadcast"))
    assertEquals(small.size, 1)
    assert(small.head.get("exchangeBytes") == null)
    assertEquals(nodes(event).filterNot(_.path("exchange").asText.isEmpty).size, 1, "nothing was shuffled")
    val large = nodes(event).filter(_.get("operator").asText.contains("facts"))
    assertEquals(large.map(_.get("region").asInt), Seq(joined.get("region").asInt), "streamed through in one stage")
    assert(small.head.get("region").asInt < joined.get("region").asInt)
  }

  test("the table that a broadcast builds is not the size of its rows") {
    val event = executed(facts.join(broadcast(names), "k").collect())
    val small = nodes(event).filter(_.path("exchange").asText == "broadcast").head
    assertEquals(small.get("rows").asLong, 100L)
    assert(small.get("bytes").asLong < 100000, small.toString)
  }

  test("before a range exchange the input is read twice, and counted once") {
    val event = executed(facts.filter("k >= 50").orderBy("v", "id").collect())
    assertEquals(rows(event, "Filter"), Seq(Some(5000L)))
    assertEquals(rows(event, "Sort"), Seq(Some(5000L)))
  }

  test("below a limit nothing is known to be complete, above a blocking operator it is") {
    val limited = executed(facts.filter("k >= 0").limit(3).collect())
    assertEquals(rows(limited, "Filter").flatten, Nil)
    val blocked = executed(facts.groupBy("k").count().limit(3).collect())
    assertEquals(rows(blocked, "Aggregate").flatten, Nil)
    assert(rows(blocked, "Project").flatten.forall(_ == 10000L) || rows(blocked, "Relation").flatten.forall(
      _ == 10000L))
  }

  test("a reused exchange: the skipped copy has the rows of the one that ran, and no seconds") {
    val totals = facts.filter("v > 0").groupBy("k").agg(sum("v").as("s"))
    val event = executed(totals.as("a").join(totals.as("b"), "s").collect())
    assertEquals(rows(event, "Aggregate"), Seq(Some(100L), Some(100L)))
    assertEqualsDouble(seconds(event).sum, event.get("taskSeconds").asDouble, 1e-6)
  }

  test("a write is profiled, a scalar subquery too") {
    val event = executed(facts.filter("v > (SELECT avg(1) FROM range(5))").write.parquet(s"$folder/out"))
    assertEquals(rows(event, "Filter").flatten, Seq(9999L))
    assertEquals(rows(event, "InsertInto"), Seq(Some(9999L)))
  }

  test("a failed query says so, without rows, and its end is told") {
    val broken = udf((id: Long) => { if (id == 9999) throw new IllegalStateException("broken") else id })
    val event = executed(intercept[Exception](facts.select(broken(col("id")).as("x")).where("x > 0").collect()))
    assertEquals(event.get("outcome").asText, "failed")
    assert(nodes(event).forall(!_.has("rows")))
    assertEquals(ended.asScala.last, (event.get("query").asLong, true))
  }

  test("what runs to fill a cache is not this query's nodes' time") {
    val base = facts.filter("v > 10").groupBy("k").agg(sum("v").as("s"))
    base.cache()
    val cached = executed(base.filter("s > 0").collect())
    val event = events.asScala.head
    assertEquals(events.size, 2)
    assertEquals(rows(event, "Filter").flatten, Seq(100L))
    assert(seconds(event).sum < event.get("taskSeconds").asDouble * 0.9, event.toPrettyString)
    assertEquals(rows(cached, "Filter").flatten, Seq(9996L))
    assert((seconds(event) ++ seconds(cached)).sum < event.get("taskSeconds").asDouble * 1.01, cached.toPrettyString)
    base.unpersist(true)
  }

  test("stage and task metrics under sparkMeasure's names, bounded") {
    executed(facts.groupBy("k").count().collect())
    val json = Frames.json.valueToTree[JsonNode](listener.metrics.stages.last(1).head)
    Seq("executorRunTime", "executorCpuTime", "jvmGCTime", "shuffleTotalBytesRead", "shuffleWriteTime")
      .foreach(name => assert(json.get("metrics").has(name), name))
    assert(listener.metrics.tasks.size > 3)
    val ring = new Ring[Int](10)
    (1 to 100).foreach(ring.add)
    assertEquals(ring.last(3), Seq(98, 99, 100))
    assertEquals(ring.size, 10)
  }

  test("a plan of 50 operators costs little") {
    val wide = (1 to 12).foldLeft(facts.filter("v >= 0")) { (frame, i) =>
      frame.groupBy(col("k"), (col("v") + i).as("v")).agg(max("id").as("id")).filter(s"id > ${-i}")
    }
    val execution = wide.queryExecution
    executed(wide.collect())
    val walked = PlanWalk(execution.executedPlan)
    assert(walked.operators.size >= 50, walked.operators.size)
    val query = registry.get(walked.query.get).get
    def once(): Double = {
      val began = System.nanoTime()
      ProfileListener.event(query, new ExecutedQuery(PlanWalk(execution.executedPlan), Nil, false), 1, false)
      (System.nanoTime() - began) / 1e6
    }
    (1 to 300).foreach(_ => once())
    val median = (1 to 101).map(_ => once()).sorted.apply(50)
    println(f"profiling ${walked.operators.size} operators: $median%.2f ms")
    assert(median < 20, median)
  }
}
