package org.apache.spark.sql.regions.rules

import java.io.{ByteArrayInputStream, ByteArrayOutputStream, DataInputStream, ObjectOutputStream}
import java.lang.invoke.SerializedLambda
import java.util.Collections

import scala.collection.mutable
import scala.util.control.NonFatal

/**
 * Digest of a function of the JVM: its captured values and the bytes of every class of the user's that it can reach.
 * Classes of Java, Scala and Spark stand for themselves: Spark's version is part of every signature.
 */
private[rules] object FunctionDigest {
  private val maxClasses = 500
  private val cache = Collections.synchronizedMap(new java.util.WeakHashMap[Class[_], Either[String, String]]())

  private val given =
    Seq("java.", "javax.", "jdk.", "sun.", "scala.", "org.apache.spark.", "org.apache.hadoop.", "org.slf4j.")

  // What makes a function depend on more than its arguments, or do more than return a value.
  private val impure = Seq(
    "java/util/Random",
    "scala/util/Random",
    "java/util/concurrent/ThreadLocalRandom",
    "java/security/SecureRandom",
    "java/util/UUID",
    "java/io/File",
    "java/io/Random",
    "java/net/",
    "java/nio/file/",
    "java/nio/channels/",
    "java/sql/",
    "java/lang/Process",
    "java/lang/Thread",
    "java/time/Clock",
    "java/util/concurrent/atomic/",
    "scala/io/",
    "scala/sys/",
    "org/apache/spark/util/AccumulatorV2",
    "org/apache/spark/util/LongAccumulator",
    "org/apache/spark/util/DoubleAccumulator",
    "org/apache/spark/util/CollectionAccumulator",
    "org/apache/spark/broadcast/Broadcast",
    "org/apache/spark/TaskContext",
    "org/apache/hadoop/",
    "java/lang/reflect/"
  )
  private val impureMembers =
    Set("currentTimeMillis", "nanoTime", "now", "random", "getenv", "getProperty", "identityHashCode")

  def apply(function: AnyRef): String =
    try Digest("function", value(function, 0))
    catch {
      case refused: Refused => throw refused
      case NonFatal(e) => Refused("UNDIGESTIBLE_FUNCTION", s"${function.getClass.getName}: $e")
    }

  private def value(value: Any, depth: Int): String = value match {
    case null => "null"
    case text: String => Digest.join("s", Seq(text))
    case plain @ (_: java.lang.Number | _: java.lang.Boolean | _: java.lang.Character) =>
      Digest.join(plain.getClass.getName, Seq(plain.toString))
    case _ if depth > 8 => Refused("UNDIGESTIBLE_FUNCTION", "captured values nested too deep")
    case function: AnyRef =>
      lambda(function) match {
        case Some(code) =>
          val captured = (0 until code.getCapturedArgCount).map(i => this.value(code.getCapturedArg(i), depth + 1))
          val name = Seq(code.getImplClass, code.getImplMethodName, code.getImplMethodSignature)
          val loader = function.getClass.getClassLoader
          Digest.join("lambda", (name :+ classes(code.getImplClass.replace('/', '.'), loader)) ++ captured)
        case None =>
          val cls = function.getClass
          Digest.join("object", Seq(cls.getName, classes(cls.getName, cls.getClassLoader), serialized(function)))
      }
  }

  private def lambda(function: AnyRef): Option[SerializedLambda] =
    if (!function.getClass.isSynthetic && !function.getClass.isHidden) None
    else {
      val replace = function.getClass.getDeclaredMethod("writeReplace")
      replace.setAccessible(true)
      replace.invoke(function) match {
        case code: SerializedLambda => Some(code)
        case _ => None
      }
    }

  private def serialized(value: AnyRef): String = {
    val bytes = new ByteArrayOutputStream()
    val out = new ObjectOutputStream(bytes)
    out.writeObject(value)
    out.close()
    Digest.ofBytes(bytes.toByteArray)
  }

  /** Digest of the class's bytes and those of all classes that it names, over and over. */
  private def classes(name: String, loader: ClassLoader): String =
    if (given.exists(name.startsWith)) name
    else {
      val root = Class.forName(name, false, loader)
      val known = cache.get(root)
      val result = if (known != null) known
      else {
        val computed =
          try Right(reachable(name, loader))
          catch { case refused: Refused => Left(refused.refusal.detail) }
        cache.put(root, computed)
        computed
      }
      result.fold(detail => Refused("UNDIGESTIBLE_FUNCTION", detail), identity)
    }

  private def reachable(name: String, loader: ClassLoader): String = {
    val found = mutable.TreeMap[String, String]()
    val open = mutable.Queue(name)
    while (open.nonEmpty) {
      val next = open.dequeue()
      if (!found.contains(next)) {
        if (found.size >= maxClasses) Refused("UNDIGESTIBLE_FUNCTION", s"$name reaches more than $maxClasses classes")
        val bytes = bytesOf(next, loader)
        found(next) = Digest.ofBytes(bytes)
        open ++= named(next, bytes).filterNot(other => given.exists(other.startsWith) || found.contains(other))
      }
    }
    Digest.of("classes", found.flatMap { case (cls, digest) => Seq(cls, digest) })
  }

  private def bytesOf(name: String, loader: ClassLoader): Array[Byte] = {
    val stream = Option(loader).getOrElse(ClassLoader.getSystemClassLoader)
      .getResourceAsStream(name.replace('.', '/') + ".class")
    if (stream == null) Refused("UNDIGESTIBLE_FUNCTION", s"no class file of $name")
    try stream.readAllBytes()
    finally stream.close()
  }

  /** Classes in the constant pool of a class file (JVM specification, 4.4). */
  private def named(owner: String, bytes: Array[Byte]): Seq[String] = {
    val in = new DataInputStream(new ByteArrayInputStream(bytes))
    in.readInt()
    in.readInt()
    val count = in.readUnsignedShort()
    val texts = new Array[String](count)
    val classes = mutable.ArrayBuffer[Int]()
    val members = mutable.ArrayBuffer[Int]()
    var i = 1
    while (i < count) {
      in.readUnsignedByte() match {
        case 1 => texts(i) = in.readUTF()
        case 7 => classes += in.readUnsignedShort()
        case 8 | 16 | 19 | 20 => in.readUnsignedShort()
        case 12 =>
          members += in.readUnsignedShort()
          in.readUnsignedShort()
        case 15 => in.skipBytes(3)
        case 5 | 6 =>
          in.skipBytes(8)
          i += 1
        case _ => in.skipBytes(4)
      }
      i += 1
    }
    val names = classes.map(texts).toSeq.map(name => name.dropWhile(_ == '[').stripPrefix("L").stripSuffix(";"))
    names.foreach(n => impure.find(n.startsWith).foreach(_ => Refused("UNDIGESTIBLE_FUNCTION", s"$owner uses $n")))
    members.map(texts).find(impureMembers.contains).foreach(m => Refused("UNDIGESTIBLE_FUNCTION", s"$owner uses $m"))
    names.filter(_.length > 1).map(_.replace('/', '.'))
  }
}
