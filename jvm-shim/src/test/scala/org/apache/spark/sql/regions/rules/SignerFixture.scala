package org.apache.spark.sql.regions.rules

import java.nio.file.{Files, Path}

import scala.collection.mutable

import org.apache.spark.api.python.PythonFunction
import org.apache.spark.sql.{DataFrame, Row}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Subquery}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.classic
import org.apache.spark.sql.regions._

/** Sees every plan where the real rule will see it, and puts another in its place when a test says so. */
object Hook {
  val seen = new ThreadLocal[mutable.Buffer[LogicalPlan]]
  val rewrite = new ThreadLocal[LogicalPlan => LogicalPlan]
}

class HookRule extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = plan match {
    case _: Subquery => plan
    case _ =>
      Option(Hook.seen.get()).foreach(_ += plan)
      Option(Hook.rewrite.get()).fold(plan)(_(plan))
  }
}

/** Takes the pickled bytes for what the function computes. */
object CommandDigests extends UdfDigests {
  override def digest(functions: Seq[PythonFunction]): Map[String, Either[Refusal, String]] =
    functions.map(f => UdfDigests.key(f) -> Right(Digest.ofBytes(f.command.toArray))).toMap
}

object SignerFixture {
  val directory: Path = Files.createTempDirectory("signer")

  lazy val spark: classic.SparkSession = {
    val session = LocalSpark.session(_.injectPreCBORule(_ => new HookRule))
    tables(session)
    session
  }

  private def tables(session: classic.SparkSession): Unit = {
    def write(name: String, query: String): Unit = {
      session.sql(query).repartition(2).write.parquet(directory.resolve(name).toString)
      session.read.parquet(directory.resolve(name).toString).createOrReplaceTempView(name)
    }
    write(
      "customers",
      """select id as c_id, concat('c', id % 7) as c_name, cast(id % 5 as int) as c_nation,
      case when id % 11 = 0 then null else cast(id % 3 as int) end as c_segment from range(60)"""
    )
    write(
      "orders",
      """select id as o_id, case when id % 13 = 0 then null else id % 70 end as o_cust,
      cast(id * 1.25 as decimal(12,2)) as o_total, cast(id as double) / 3 as o_weight,
      date_add(date'2024-01-01', cast(id % 90 as int)) as o_date, concat('s', id % 4) as o_status,
      array(id % 3, id % 5) as o_tags, named_struct('a', id % 2, 'b', concat('x', id % 6)) as o_info from range(300)"""
    )
    write(
      "items",
      """select id % 320 as i_order, cast(id % 17 as int) as i_qty, cast(id % 9 as short) as i_line,
      cast((id % 100) * 0.5 as decimal(10,2)) as i_price,
      case when id % 10 = 0 then null else concat('p', id % 12) end as i_part from range(900)"""
    )
    session.sql("select id, id % 10 as v, concat('p', id % 3) as p from range(100)").write.partitionBy("p")
      .parquet(directory.resolve("parts").toString)
    session.read.parquet(directory.resolve("parts").toString).createOrReplaceTempView("parts")
  }
}

abstract class SignerSuite extends munit.FunSuite {
  lazy val spark: classic.SparkSession = SignerFixture.spark

  override def beforeAll(): Unit = LocalSpark.use(spark)

  override def munitTimeout: scala.concurrent.duration.Duration = scala.concurrent.duration.Duration(300, "s")

  /** The plan of a query as the rule sees it. */
  def planned(df: DataFrame): LogicalPlan = {
    val fresh = classic.Dataset.ofRows(
      df.sparkSession.asInstanceOf[classic.SparkSession],
      df.asInstanceOf[classic.DataFrame].logicalPlan)
    Hook.seen.set(mutable.Buffer())
    try {
      fresh.queryExecution.optimizedPlan
      Hook.seen.get().last
    } finally Hook.seen.remove()
  }

  def sign(df: DataFrame, floatAggregates: Boolean = false): SignedQuery = {
    val session = df.sparkSession.asInstanceOf[classic.SparkSession]
    Signer.sign(planned(df), session, CommandDigests, floatAggregates)
  }

  def sql(text: String): DataFrame = spark.sql(text)

  def root(df: DataFrame): Signature = sign(df).nodes.head.signature match {
    case Right(signature) => signature
    case Left(refusal) => fail(s"$refusal\n${planned(df)}")
  }

  def refusal(df: DataFrame): Refusal = sign(df).nodes.head.signature.left.getOrElse(fail(s"signed:\n${planned(df)}"))

  /** Codes of the refusals that do not just repeat one from below. */
  def codes(df: DataFrame): Set[String] =
    sign(df).nodes.flatMap(_.signature.left.toOption).map(_.code).filter(_ != "CHILD_REFUSED").toSet

  def sorted(df: DataFrame): Seq[String] = df.collect().toSeq.map((row: Row) => row.toString).sorted

  /** Whether stored columns and filters serve a node, by the rule of docs/protocol.md. */
  def covers(
      query: SignedQuery,
      wanted: Signature,
      core: String,
      conjuncts: Set[String],
      columns: Set[String]): Boolean = {
    def covered(by: Set[String])(digest: String): Boolean =
      by(digest) || query.expressions.get(digest).exists(_.forall(covered(by)))
    def known(by: Set[String]): Set[String] = {
      val pairs = conjuncts.toSeq.flatMap(query.equal.get)
      val more = (pairs ++ pairs.map(_.swap)).collect { case (a, b) if !covered(by)(a) && covered(by)(b) => a }
      if (more.isEmpty) by else known(by ++ more)
    }
    val there = known(columns)
    wanted.core == core && conjuncts.subsetOf(wanted.conjuncts.toSet) && wanted.columns.forall(covered(there)) &&
    wanted.conjuncts.filterNot(conjuncts).forall(query.conjunctColumns(_).forall(covered(there)))
  }
}
