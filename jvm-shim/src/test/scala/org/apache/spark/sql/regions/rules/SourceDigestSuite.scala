package org.apache.spark.sql.regions.rules

import java.io.RandomAccessFile
import java.nio.file.{Files, Path, Paths, StandardCopyOption}
import java.nio.file.attribute.FileTime

import scala.jdk.CollectionConverters._

import org.apache.hadoop.fs.{Path => HadoopPath}

import org.apache.spark.sql.{DataFrame, functions}
import org.apache.spark.sql.regions.{Refusal, RegionsConf, SignedNode}

/** By what a file is known again, and when that is not enough. */
class SourceDigestSuite extends SignerSuite {
  private val old = 1700000000000L
  private lazy val folder = Files.createTempDirectory(SignerFixture.directory, "sources")

  private def within[T](confs: (String, String)*)(body: => T): T = {
    val before = confs.map { case (key, _) => key -> spark.conf.getOption(RegionsConf.prefix + key) }
    confs.foreach { case (key, value) => spark.conf.set(RegionsConf.prefix + key, value) }
    try body
    finally before.foreach {
        case (key, Some(value)) => spark.conf.set(RegionsConf.prefix + key, value)
        case (key, None) => spark.conf.unset(RegionsConf.prefix + key)
      }
  }

  private def footers[T](body: => T): T = within("sources.verify" -> "footer")(body)

  /** `rows` as one old file, without the checksum that Spark's local writer puts beside it. */
  private def write(name: String, format: String, rows: DataFrame, options: (String, String)*): Path = {
    val written = Files.createTempDirectory(folder, "written").resolve("x")
    rows.coalesce(1).write.format(format).options(options.toMap + ("compression" -> "none")).save(written.toString)
    val part = Files.list(written).iterator().asScala.find(_.getFileName.toString.startsWith("part-")).get
    val target = folder.resolve(name)
    Files.move(part, target, StandardCopyOption.REPLACE_EXISTING)
    Files.setLastModifiedTime(target, FileTime.fromMillis(old))
    target
  }

  private def length(file: Path): Long = Files.size(file)

  private def node(df: DataFrame): SignedNode = sign(df).nodes.head

  private def lineage(df: DataFrame): String = root(df).lineage

  private def rows(from: Int): DataFrame = spark.range(from, from + 100).selectExpr("id", "cast(id as string) as text")

  test("defaults") {
    val conf = new org.apache.spark.sql.internal.SQLConf
    assertEquals(conf.getConf(RegionsConf.sourcesRacySeconds), 2)
    assertEquals(conf.getConf(RegionsConf.sourcesVerify), "listing")
  }

  test("a young file: an identity, and nothing stored of what stands on it") {
    val file = write("young.parquet", "parquet", rows(1000))
    def read: DataFrame = spark.read.parquet(file.toString)
    def joined: SignedNode =
      node(sql("select o_id from orders").join(read, functions.col("o_id") === functions.col("id")))
    within("sources.racySeconds" -> "600") {
      for (age <- Seq(0L, 300000L, -300000L)) {
        Files.setLastModifiedTime(file, FileTime.fromMillis(System.currentTimeMillis() - age))
        read.createOrReplaceTempView("young")
        val above = sql("select c_id from customers where c_id > (select max(id) from young)")
        for (signed <- sign(read).nodes :+ joined :+ node(above)) {
          assert(signed.signature.isRight, signed.signature)
          assertEquals(signed.notStorable.map(_.code), Some("RACY_INPUT"))
        }
      }
      Files.setLastModifiedTime(file, FileTime.fromMillis(System.currentTimeMillis() - 700000))
      assertEquals(node(read).notStorable, None)
    }
    Files.setLastModifiedTime(file, FileTime.fromMillis(System.currentTimeMillis() + 300000))
    within("sources.racySeconds" -> "0")(assertEquals(node(read).notStorable, None))
  }

  test("the limit itself") {
    def racy(began: Long, times: Long*): Option[Refusal] =
      ListedFiles(
        began, times.zipWithIndex.map { case (t, i) => new HadoopPath(s"/f$i") -> FileState(1, t) }.toMap).racy(2)
    assertEquals(racy(10000, 8000, 500), None)
    assertEquals(racy(10000, 8001, 500).map(_.code), Some("RACY_INPUT"))
    assertEquals(racy(10000, 500, 10000).map(_.detail), Some("/f1, 0 ms old"))
    assertEquals(racy(10000, 99999).map(_.detail), Some("/f0, -89999 ms old"))
    assertEquals(racy(10000), None)
  }

  test("a file system without times") {
    val file = write("timeless.parquet", "parquet", rows(1000))
    Files.setLastModifiedTime(file, FileTime.fromMillis(0))
    assertEquals(codes(spark.read.parquet(file.toString)), Set("NO_FILE_TIME"))
    footers(root(spark.read.parquet(file.toString)))
  }

  for ((format, options) <- Seq(
      "parquet" -> Seq("parquet.enable.dictionary" -> "false"),
      "orc" -> Nil,
      "csv" -> Nil,
      "json" -> Nil))
    test(s"another $format file of the same length and time: not seen by a listing, seen by what is in it") {
      val name = s"replaced.$format"
      def read: DataFrame = spark.read.schema("id long, text string").format(format).load(folder.resolve(name).toString)
      val file = write(name, format, rows(1000), options: _*)
      val before = length(file)
      val (listed, seen) = (lineage(read), footers(lineage(read)))
      assertEquals((lineage(read), footers(lineage(read))), (listed, seen))
      assertNotEquals(listed, seen)
      val plain = sign(read)
      val verified = footers(sign(read))
      def unchanged(query: SignedQuery): Boolean = query.inputs(query.nodes.head).head.unchanged()
      assert(unchanged(plain) && unchanged(verified))
      write(name, format, rows(2000), options: _*)
      assertEquals(length(file), before)
      assertEquals(lineage(read), listed)
      assertNotEquals(footers(lineage(read)), seen)
      // As a commit and a load ask: the conf of that moment does not matter, but that of the signing.
      assert(unchanged(plain) && !unchanged(verified))
    }

  test("what a footer does not see: values that trade places far from the end of a large file") {
    def read: DataFrame = spark.read.parquet(folder.resolve("large.parquet").toString)
    def large(first: Int, second: Int): Path = write(
      "large.parquet",
      "parquet",
      spark.range(50000).selectExpr(s"case id when $first then $second when $second then $first else id end as id"),
      "parquet.enable.dictionary" -> "false"
    )
    val before = length(large(0, 0))
    val seen = footers(lineage(read))
    assertEquals(length(large(40, 41)), before)
    assertEquals(read.head(42).last.getLong(0), 40L)
    assertEquals(footers(lineage(read)), seen)
    // An extreme of the column is in the statistics.
    write("large.parquet", "parquet",
      spark.range(50000).selectExpr("case id when 0 then -1 else id end as id"), "parquet.enable.dictionary" -> "false")
    assertEquals(Files.size(folder.resolve("large.parquet")), before)
    assertNotEquals(footers(lineage(read)), seen)
  }

  test("a footer longer than what is read at once") {
    val columns = (0 until 2000).map(i => s"id + $i as a_column_with_a_long_name_$i")
    val file = write("wide.parquet", "parquet", spark.range(3).selectExpr(columns: _*))
    val path = new HadoopPath(file.toUri)
    val conf = spark.sessionState.newHadoopConf()
    // Not by a signature, which has the schema that is changed here.
    def seen: String = new FileContents(conf, true, Some(FileContents.parquet))(
      Seq(path.getFileSystem(conf).getFileStatus(path)))(path)
    val before = seen
    assertEquals(seen, before)
    val wide = Files.readAllBytes(file)
    val footer = FileContents.parquet(wide.takeRight(64 << 10)).toInt
    val at = new String(wide, "ISO-8859-1").indexOf("a_column_with_a_long_name_0", wide.length - footer)
    assert(at > 0 && wide.length - at > (64 << 10), s"$at of ${wide.length}, footer $footer")
    wide(at) = 'b'
    Files.write(file, wide)
    assertNotEquals(seen, before)
  }

  test("what cannot be read, or is too much to read") {
    val broken = folder.resolve("broken.parquet")
    Files.write(broken, Array.fill[Byte](100)(7))
    Files.setLastModifiedTime(broken, FileTime.fromMillis(old))
    def read: DataFrame = spark.read.schema("id long").parquet(broken.toString)
    root(read)
    assertEquals(footers(codes(read)), Set("UNVERIFIABLE_INPUT"))
    val orc = spark.read.schema("id long").orc(broken.toString)
    assertEquals(footers(codes(orc)), Set("UNVERIFIABLE_INPUT"))
    val large = folder.resolve("large.txt")
    val file = new RandomAccessFile(large.toFile, "rw")
    file.setLength((64L << 20) + 1)
    file.close()
    Files.setLastModifiedTime(large, FileTime.fromMillis(old))
    root(spark.read.text(large.toString))
    assertEquals(footers(codes(spark.read.text(large.toString))), Set("TOO_LARGE_TO_VERIFY"))
  }

  test("many files are read side by side, each under its own name") {
    val file = write("one.parquet", "parquet", rows(1000))
    val other = write("other.parquet", "parquet", rows(2000))
    val many = Files.createDirectories(folder.resolve("many"))
    (0 until 40).foreach(i =>
      Files.copy(if (i == 17) other else file, many.resolve(s"$i.parquet"), StandardCopyOption.COPY_ATTRIBUTES))
    def read: DataFrame = spark.read.parquet(many.toString)
    val seen = footers(lineage(read))
    assertEquals(footers(lineage(read)), seen)
    Files.move(many.resolve("17.parquet"), many.resolve("x"))
    Files.move(many.resolve("18.parquet"), many.resolve("17.parquet"))
    Files.move(many.resolve("x"), many.resolve("18.parquet"))
    assertNotEquals(footers(lineage(read)), seen)
  }

  test("the tag of an object store, and the checksum of a file system") {
    spark.conf.set("fs.tagged.impl", classOf[TaggedFileSystem].getName)
    def read: DataFrame = spark.read.parquet("tagged://" + folder.resolve("tagged.parquet"))
    try {
      for ((tags, verify) <- Seq((true, "listing"), (true, "footer"), (false, "footer"), (false, "listing")))
        within("sources.verify" -> verify) {
          TaggedFileSystem.tags = tags
          val known = tags || verify == "footer"
          write("tagged.parquet", "parquet", rows(1000))
          val signed = sign(read)
          assertEquals(lineage(read), signed.nodes.head.signature.map(_.lineage).getOrElse(""))
          write("tagged.parquet", "parquet", rows(2000))
          assertEquals(lineage(read) != signed.nodes.head.signature.map(_.lineage).getOrElse(""), known)
          assertEquals(signed.inputs(signed.nodes.head).head.unchanged(), !known)
          // Known by more than time, a file needs none.
          Files.setLastModifiedTime(Paths.get(folder.toString, "tagged.parquet"), FileTime.fromMillis(0))
          assertEquals(codes(read), if (known) Set.empty[String] else Set("NO_FILE_TIME"))
        }
    } finally TaggedFileSystem.tags = true
  }
}
