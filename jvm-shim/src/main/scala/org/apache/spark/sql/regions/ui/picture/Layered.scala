package org.apache.spark.sql.regions.ui.picture

import scala.collection.mutable

/**
 * Where the boxes of a drawn graph stand.
 *
 * @param x left edge of each node
 * @param y upper edge of each node
 * @param bends of each edge, points that it passes between its ends; in the order of the edges
 */
final case class Layout(
    x: IndexedSeq[Double],
    y: IndexedSeq[Double],
    bends: IndexedSeq[Seq[(Double, Double)]],
    width: Double,
    height: Double)

/**
 * Layered drawing after Sugiyama: each edge points down, layers by the longest way to a sink, few crossings by
 * barycentres, and x so that nodes stand near their neighbours (isotonic regression within a layer, exact for one sweep).
 * Linear in nodes and edges for each sweep, and without recursion: plans of a thousand operators in a row are drawn too.
 */
object Layered {
  private val sweeps = 8
  private val mostBends = 6000

  /** @param edges (from, to); an edge that would close a cycle, or a loop, is drawn but does not count */
  def apply(
      count: Int,
      edges: IndexedSeq[(Int, Int)],
      boxWidth: Double,
      boxHeight: Double,
      gapX: Double,
      gapY: Double): Layout = {
    val order = dfs(count, edges)
    val position = new Array[Int](count)
    order.zipWithIndex.foreach { case (node, at) => position(node) = at }
    // Consumers come first in the order, so an edge counts if it points backwards in it.
    val counted = edges.map { case (from, to) => position(to) < position(from) }
    val below = Array.fill(count)(mutable.ArrayBuffer.empty[Int])
    edges.indices.filter(counted).foreach(e => below(edges(e)._1) += edges(e)._2)
    val layer = new Array[Int](count)
    order.foreach(node => layer(node) = below(node).foldLeft(0)((most, to) => math.max(most, layer(to) + 1)))
    new Drawing(count, edges, counted, layer, order, boxWidth, boxHeight, gapX, gapY).layout
  }

  /** Every node after all the nodes that it feeds, cycles aside; neighbours in the order of the edges. */
  private def dfs(count: Int, edges: IndexedSeq[(Int, Int)]): Seq[Int] = {
    val feeds = Array.fill(count)(mutable.ArrayBuffer.empty[Int])
    val fed = Array.fill(count)(mutable.ArrayBuffer.empty[Int])
    edges.foreach { case (from, to) =>
      if (from != to) {
        feeds(from) += to
        fed(to) += from
      }
    }
    val open = feeds.map(_.size)
    val seen = new Array[Boolean](count)
    val order = mutable.ArrayBuffer.empty[Int]
    val stack = mutable.Stack.empty[Int]
    def visit(start: Int): Unit = {
      stack.push(start)
      while (stack.nonEmpty) {
        val node = stack.pop()
        if (!seen(node)) {
          seen(node) = true
          order += node
          fed(node).reverseIterator.foreach { from =>
            open(from) -= 1
            if (open(from) <= 0 && !seen(from)) stack.push(from)
          }
        }
      }
    }
    (0 until count).filter(feeds(_).isEmpty).foreach(visit)
    // What is left stands in a cycle or above one.
    (0 until count).foreach(node => if (!seen(node)) visit(node))
    order.toSeq
  }

  private final class Drawing(
      count: Int,
      edges: IndexedSeq[(Int, Int)],
      counted: IndexedSeq[Boolean],
      layer: Array[Int],
      order: Seq[Int],
      boxWidth: Double,
      boxHeight: Double,
      gapX: Double,
      gapY: Double) {
    private val depth = if (count == 0) 0 else layer.max + 1
    private val layerOf = mutable.ArrayBuffer.from(layer)
    private val width = mutable.ArrayBuffer.fill(count)(boxWidth)
    private val up = mutable.ArrayBuffer.fill(count)(mutable.ArrayBuffer.empty[Int])
    private val down = mutable.ArrayBuffer.fill(count)(mutable.ArrayBuffer.empty[Int])
    private val between = Array.fill(edges.size)(Seq.empty[Int])
    private val rows = Array.fill(depth)(mutable.ArrayBuffer.empty[Int])
    private val x = mutable.ArrayBuffer.empty[Double]

    private def link(above: Int, under: Int): Unit = {
      down(above) += under
      up(under) += above
    }

    /** A long edge gets a point in each layer that it crosses, so that boxes make room for it. */
    private def addBends(): Unit = edges.indices.filter(counted).foreach { e =>
      val (from, to) = edges(e)
      val span = layer(from) - layer(to)
      if (span <= 1 || layerOf.size - count + span > mostBends) link(from, to)
      else {
        val points = (layer(to) + 1 until layer(from)).reverse.map { at =>
          layerOf += at
          width += 8.0
          up += mutable.ArrayBuffer.empty
          down += mutable.ArrayBuffer.empty
          layerOf.size - 1
        }
        between(e) = points
        (from +: points :+ to).sliding(2).foreach { case Seq(above, under) => link(above, under) }
      }
    }

    /** Layer by layer from the sinks, each node where the first of those that it feeds stands. */
    private def arrange(): Unit = {
      order.foreach(node => rows(layer(node)) += node)
      (count until layerOf.size).foreach(point => rows(layerOf(point)) += point)
      val place = new Array[Double](layerOf.size)
      def number(row: mutable.ArrayBuffer[Int]): Unit =
        row.indices.foreach(i => place(row(i)) = i)
      def sort(at: Int, neighbours: Int => mutable.ArrayBuffer[Int]): Unit = {
        val key = rows(at).map(node => node -> mean(neighbours(node), place, place(node))).toMap
        rows(at) = rows(at).sortBy(key)
        number(rows(at))
      }
      rows.foreach(number)
      (1 until depth).foreach(sort(_, down(_)))
      if (edges.size >= count) (1 to sweeps / 2).foreach { _ =>
        (0 until depth - 1).reverse.foreach(sort(_, up(_)))
        (1 until depth).foreach(sort(_, down(_)))
      }
    }

    private def mean(nodes: mutable.ArrayBuffer[Int], of: Int => Double, otherwise: Double): Double =
      if (nodes.isEmpty) otherwise else nodes.iterator.map(of).sum / nodes.size

    private def settle(): Unit = {
      x ++= mutable.ArrayBuffer.fill(layerOf.size)(0.0)
      rows.foreach { row =>
        var at = 0.0
        row.foreach { node =>
          x(node) = at + width(node) / 2
          at += width(node) + gapX
        }
      }
      (1 to sweeps).foreach { sweep =>
        if (sweep % 2 == 1) (1 until depth).foreach(shift(_, down(_)))
        else (0 until depth - 1).reverse.foreach(shift(_, up(_)))
      }
      if (depth > 1) (1 until depth).foreach(shift(_, down(_)))
    }

    /** The places nearest to the neighbours' means that keep order and distance: pool adjacent violators. */
    private def shift(at: Int, neighbours: Int => mutable.ArrayBuffer[Int]): Unit = {
      val row = rows(at)
      val offset = new Array[Double](row.size)
      (1 until row.size).foreach { i =>
        offset(i) = offset(i - 1) + (width(row(i - 1)) + width(row(i))) / 2 + gapX
      }
      val sums = mutable.ArrayBuffer.empty[(Double, Int)]
      row.indices.foreach { i =>
        sums += ((mean(neighbours(row(i)), x(_), x(row(i))) - offset(i), 1))
        while (sums.size > 1 && level(sums(sums.size - 2)) >= level(sums.last)) {
          val (sum, size) = sums.remove(sums.size - 1)
          val (before, many) = sums.remove(sums.size - 1)
          sums += ((before + sum, many + size))
        }
      }
      var i = 0
      sums.foreach { pool =>
        (1 to pool._2).foreach { _ =>
          x(row(i)) = level(pool) + offset(i)
          i += 1
        }
      }
    }

    private def level(pool: (Double, Int)): Double = pool._1 / pool._2

    def layout: Layout = {
      addBends()
      arrange()
      settle()
      val left = if (x.isEmpty) 0.0 else layerOf.indices.iterator.map(n => x(n) - width(n) / 2).min
      def top(node: Int): Double = (depth - 1 - layerOf(node)) * (boxHeight + gapY)
      Layout(
        (0 until count).map(n => x(n) - boxWidth / 2 - left),
        (0 until count).map(top),
        between.toIndexedSeq.map(_.map(point => (x(point) - left, top(point) + boxHeight / 2))),
        if (x.isEmpty) 0 else layerOf.indices.iterator.map(n => x(n) + width(n) / 2).max - left,
        math.max(0, depth * (boxHeight + gapY) - gapY)
      )
    }
  }
}
