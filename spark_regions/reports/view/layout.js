/*
 * Layered drawing after Sugiyama: each edge points down, layers by the longest way to a sink, few crossings by
 * barycentres, and x so that nodes stand near their neighbours (isotonic regression within a layer, exact for one sweep).
 * Linear in nodes and edges for each sweep but for sorting a layer, and without recursion: plans of thousands of
 * operators in a row are drawn too. Spark's pages have dagre for this, which a report has not.
 */
(function (view) {
  'use strict';
  const SWEEPS = 8;
  const MOST_BENDS = 6000;
  const BEND_WIDTH = 8;

  /**
   * @param count nodes are 0 to count - 1
   * @param edges [from, to]; one that would close a cycle, or a loop, is drawn but does not count
   * @param size {boxWidth, boxHeight, gapX, gapY}
   * @returns {x, y, bends, width, height}: upper left corners; of each edge the points that it passes between its ends
   */
  view.layered = function (count, edges, size) {
    const order = topological(count, edges);
    const position = new Array(count).fill(0);
    order.forEach((node, at) => { position[node] = at; });
    // Consumers come first in the order, so an edge counts if it points backwards in it.
    const counts = edges.map(([from, to]) => position[to] < position[from]);
    const below = Array.from({length: count}, () => []);
    edges.forEach(([from, to], e) => { if (counts[e]) below[from].push(to); });
    const layer = new Array(count).fill(0);
    order.forEach(node => { layer[node] = below[node].reduce((most, to) => Math.max(most, layer[to] + 1), 0); });
    return drawing(count, edges, counts, layer, order, size);
  };

  /** Every node after all the nodes that it feeds, cycles aside; neighbours in the order of the edges. */
  function topological(count, edges) {
    const fed = Array.from({length: count}, () => []);
    const open = new Array(count).fill(0);
    edges.forEach(([from, to]) => {
      if (from === to) return;
      open[from] += 1;
      fed[to].push(from);
    });
    const seen = new Array(count).fill(false);
    const order = [];
    function visit(start) {
      const stack = [start];
      while (stack.length) {
        const node = stack.pop();
        if (seen[node]) continue;
        seen[node] = true;
        order.push(node);
        for (let i = fed[node].length - 1; i >= 0; i -= 1) {
          const from = fed[node][i];
          open[from] -= 1;
          if (open[from] <= 0 && !seen[from]) stack.push(from);
        }
      }
    }
    open.map((feeds, node) => (feeds === 0 ? node : -1)).filter(node => node >= 0).forEach(visit);
    // What is left stands in a cycle or above one.
    for (let node = 0; node < count; node += 1) if (!seen[node]) visit(node);
    return order;
  }

  function drawing(count, edges, counts, layer, order, {boxWidth, boxHeight, gapX, gapY}) {
    const depth = layer.reduce((most, at) => Math.max(most, at + 1), 0);
    const layerOf = layer.slice();
    const width = new Array(count).fill(boxWidth);
    const up = Array.from({length: count}, () => []);
    const down = Array.from({length: count}, () => []);
    const between = edges.map(() => []);
    addBends();
    const rows = Array.from({length: depth}, () => []);
    order.forEach(node => rows[layer[node]].push(node));
    for (let point = count; point < layerOf.length; point += 1) rows[layerOf[point]].push(point);
    arrange();
    const x = settle();

    const ends = layerOf.map((_, node) => [x[node] - width[node] / 2, x[node] + width[node] / 2]);
    const left = ends.reduce((least, [from]) => Math.min(least, from), count ? Infinity : 0);
    const right = ends.reduce((most, [, to]) => Math.max(most, to), count ? -Infinity : 0);
    const top = node => (depth - 1 - layerOf[node]) * (boxHeight + gapY);
    return {
      x: layer.map((_, node) => x[node] - boxWidth / 2 - left),
      y: layer.map((_, node) => top(node)),
      bends: between.map(points => points.map(point => [x[point] - left, top(point) + boxHeight / 2])),
      width: right - left,
      height: Math.max(0, depth * (boxHeight + gapY) - gapY),
    };

    function link(above, under) {
      down[above].push(under);
      up[under].push(above);
    }

    /** A long edge gets a point in each layer that it crosses, so that boxes make room for it. */
    function addBends() {
      edges.forEach(([from, to], e) => {
        if (!counts[e]) return;
        const span = layer[from] - layer[to];
        let above = from;
        if (span > 1 && layerOf.length - count + span <= MOST_BENDS) {
          for (let at = layer[from] - 1; at > layer[to]; at -= 1) {
            const point = layerOf.push(at) - 1;
            width.push(BEND_WIDTH);
            up.push([]);
            down.push([]);
            between[e].push(point);
            link(above, point);
            above = point;
          }
        }
        link(above, to);
      });
    }

    /** Layer by layer from the sinks, each node where the mean of those that it feeds stands. */
    function arrange() {
      const place = [];
      const number = row => row.forEach((node, at) => { place[node] = at; });
      function sort(at, neighbours) {
        const key = new Map(rows[at].map(node => [node, mean(neighbours[node], place, place[node])]));
        rows[at].sort((a, b) => key.get(a) - key.get(b));
        number(rows[at]);
      }
      rows.forEach(number);
      for (let at = 1; at < depth; at += 1) sort(at, down);
      if (edges.length < count) return;
      for (let sweep = 0; sweep < SWEEPS / 2; sweep += 1) {
        for (let at = depth - 2; at >= 0; at -= 1) sort(at, up);
        for (let at = 1; at < depth; at += 1) sort(at, down);
      }
    }

    function settle() {
      const places = new Array(layerOf.length).fill(0);
      rows.forEach(row => {
        let at = 0;
        row.forEach(node => {
          places[node] = at + width[node] / 2;
          at += width[node] + gapX;
        });
      });
      for (let sweep = 1; sweep <= SWEEPS + 1; sweep += 1) {
        if (sweep % 2 === 1) for (let at = 1; at < depth; at += 1) shift(places, at, down);
        else for (let at = depth - 2; at >= 0; at -= 1) shift(places, at, up);
      }
      return places;
    }

    /** The places nearest to the neighbours' means that keep order and distance: pool adjacent violators. */
    function shift(places, at, neighbours) {
      const row = rows[at];
      const offset = [0];
      for (let i = 1; i < row.length; i += 1) {
        offset.push(offset[i - 1] + (width[row[i - 1]] + width[row[i]]) / 2 + gapX);
      }
      const pools = [];
      row.forEach((node, i) => {
        let pool = {sum: mean(neighbours[node], places, places[node]) - offset[i], size: 1};
        while (pools.length && level(pools[pools.length - 1]) >= level(pool)) {
          const before = pools.pop();
          pool = {sum: before.sum + pool.sum, size: before.size + pool.size};
        }
        pools.push(pool);
      });
      let i = 0;
      pools.forEach(pool => {
        for (let n = 0; n < pool.size; n += 1, i += 1) places[row[i]] = level(pool) + offset[i];
      });
    }
  }

  const level = pool => pool.sum / pool.size;
  const mean = (nodes, of, otherwise) =>
    nodes.length ? nodes.reduce((sum, node) => sum + of[node], 0) / nodes.length : otherwise;
})(window.regionsView);
