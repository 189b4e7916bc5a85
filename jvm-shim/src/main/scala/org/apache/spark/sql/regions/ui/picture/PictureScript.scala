package org.apache.spark.sql.regions.ui.picture

import scala.xml.{Node, NodeSeq, Unparsed}

import org.apache.spark.ui.CspNonce

/** Looks and behaviour of the tab's pages, inline: a jar from spark.jars cannot serve files, and nothing is fetched from elsewhere. */
private[ui] object PictureScript {

  /** Buttons, and the window that a picture is moved about in. */
  def framed(id: String, picture: Node, height: Int): NodeSeq =
    <div class="regions-frame" data-picture={id}>
      <div class="btn-group btn-group-sm regions-buttons" role="group" aria-label="Zoom controls">
        <button type="button" class="btn btn-light border" data-zoom="out" aria-label="Zoom out" title="Zoom out (-)">−</button>
        <button type="button" class="btn btn-light border" data-zoom="fit" aria-label="Fit the whole picture" title="Fit (0)">fit</button>
        <button type="button" class="btn btn-light border" data-zoom="one" aria-label="Original size" title="Original size (1)">1:1</button>
        <button type="button" class="btn btn-light border" data-zoom="in" aria-label="Zoom in" title="Zoom in (+)">+</button>
      </div>
      <div class="regions-window" style={s"height: ${height}px"}>{picture}</div>
      <p class="text-muted small mb-2">Drag or use the arrow keys to move, the buttons, + and − or Ctrl + wheel to zoom.</p>
    </div>

  def style: Node = <style>{Unparsed(css)}</style>

  def script: Node = <script nonce={CspNonce.get}>{Unparsed(code)}</script>

  private val lights = Seq("#dbeafe", "#dcfce7", "#fef3c7", "#fae8ff", "#ffe4e6", "#cffafe", "#ede9fe", "#ecfccb")
  private val darks = Seq("#1e3a5f", "#14432a", "#4a3a10", "#46204f", "#4c1d26", "#12444d", "#342a5e", "#33430f")
  private val lines = Seq("#2563eb", "#16a34a", "#b45309", "#a21caf", "#e11d48", "#0891b2", "#7c3aed", "#4d7c0f")

  private val css: String = {
    def colours(fills: Seq[String], prefix: String): String = fills.zip(lines).zipWithIndex.map {
      case ((fill, line), i) =>
        s"$prefix.regions-box.regions-colour-${i + 1} rect, $prefix.regions-key-${i + 1} { fill: $fill; background: $fill; " +
          s"stroke: $line; border-color: $line; }"
    }.mkString("\n")
    s"""
${colours(lights, "")}
${colours(darks, "[data-bs-theme=dark] ")}
.regions-window { border: 1px solid var(--bs-border-color); border-radius: 4px; overflow: hidden; }
.regions-window:focus-within { outline: 2px solid var(--bs-link-color); }
.regions-picture { width: 100%; height: 100%; cursor: grab; outline: none; touch-action: none; }
.regions-picture text { font: 12px sans-serif; fill: var(--bs-body-color); }
.regions-picture .regions-name { font-weight: bold; }
.regions-picture .regions-number { font-weight: bold; text-anchor: end; }
.regions-picture .regions-badge { font-weight: bold; }
.regions-picture .regions-edge-label { font-size: 11px; paint-order: stroke; stroke: var(--bs-body-bg); stroke-width: 3px; }
.regions-box rect { fill: var(--bs-tertiary-bg); stroke: var(--bs-secondary-color); stroke-width: 1px; }
.regions-box.regions-is-read rect, .regions-box.regions-is-kept rect, .regions-box.regions-is-shared rect { stroke-width: 3px; }
.regions-box.regions-is-lost rect { stroke: var(--bs-danger) !important; stroke-width: 3px; stroke-dasharray: 3 3; }
.regions-box.regions-idle { opacity: 0.55; }
.regions-box.regions-idle rect { stroke-dasharray: 5 4; }
.regions-edge { fill: none; stroke: var(--bs-secondary-color); stroke-width: 1.2px; }
.regions-edge.regions-kept { stroke-width: 3px; stroke-dasharray: 7 3; }
.regions-tip { fill: var(--bs-secondary-color); }
.regions-key { display: inline-block; border: 1px solid; border-radius: 4px; padding: 0 .4em; margin-right: .3em; }
.regions-bar { display: inline-block; height: .8em; background: var(--bs-link-color); vertical-align: baseline; }
.regions-digest { font-family: monospace; }
.regions-cards { display: flex; flex-wrap: wrap; gap: 1rem; margin: 0 0 1rem 0; padding: 0; }
.regions-cards > div { border: 1px solid var(--bs-border-color); border-radius: 4px; padding: .5rem 1rem; min-width: 11rem; }
.regions-cards dt { font-weight: normal; color: var(--bs-secondary-color); }
.regions-cards dd { font-size: 1.3rem; margin: 0; }
.regions-cards small { font-size: .8rem; color: var(--bs-secondary-color); display: block; }
.regions-line { white-space: nowrap; }
.regions-bad { color: var(--bs-danger); font-weight: bold; }
"""
  }

  private val code =
    """
(function () {
  function each(list, work) { Array.prototype.forEach.call(list, work); }
  function picture(frame) {
    var svg = frame.querySelector('svg');
    var width = +svg.dataset.width, height = +svg.dataset.height;
    var view = {x: 0, y: 0, w: width, h: height};
    function apply() { svg.setAttribute('viewBox', [view.x, view.y, view.w, view.h].join(' ')); }
    function pixels() { return svg.getBoundingClientRect(); }
    function scale() { var box = pixels(); return Math.max(view.w / box.width, view.h / box.height); }
    function zoom(factor, px, py) {
      var box = pixels(), unit = scale();
      var next = Math.min(Math.max(unit * factor, 0.2), Math.max(width / box.width, height / box.height, 1) * 1.2);
      var fx = px === undefined ? 0.5 : px, fy = py === undefined ? 0.5 : py;
      var w = box.width * next, h = box.height * next;
      var cx = view.x + view.w / 2 + (fx - 0.5) * box.width * unit;
      var cy = view.y + view.h / 2 + (fy - 0.5) * box.height * unit;
      view = {x: cx - fx * w, y: cy - fy * h, w: w, h: h};
      apply();
    }
    function fit() { view = {x: 0, y: 0, w: width, h: height}; apply(); }
    function one() {
      var box = pixels();
      // The focus is seen, and as much around it as there is.
      function side(focus, length, shown) {
        return length < shown ? (length - shown) / 2 : Math.min(Math.max(0, focus - shown / 2), length - shown);
      }
      view = {x: side(+svg.dataset.x, width, box.width), y: side(+svg.dataset.y, height, box.height), w: box.width, h: box.height};
      apply();
    }
    function move(dx, dy) { var unit = scale(); view.x += dx * unit; view.y += dy * unit; apply(); }
    var actions = {'in': function () { zoom(0.8); }, out: function () { zoom(1.25); }, fit: fit, one: one};
    each(frame.querySelectorAll('[data-zoom]'), function (button) {
      button.addEventListener('click', function () { actions[button.dataset.zoom](); });
    });
    svg.addEventListener('keydown', function (event) {
      var keys = {'+': 'in', '=': 'in', '-': 'out', '0': 'fit', '1': 'one'};
      var arrows = {ArrowLeft: [-60, 0], ArrowRight: [60, 0], ArrowUp: [0, -60], ArrowDown: [0, 60]};
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (keys[event.key]) actions[keys[event.key]]();
      else if (arrows[event.key]) move(arrows[event.key][0], arrows[event.key][1]);
      else return;
      event.preventDefault();
    });
    svg.addEventListener('wheel', function (event) {
      if (!event.ctrlKey) return;
      var box = pixels();
      zoom(event.deltaY > 0 ? 1.25 : 0.8, (event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height);
      event.preventDefault();
    }, {passive: false});
    var from = null, moved = false;
    svg.addEventListener('pointerdown', function (event) { from = [event.clientX, event.clientY]; moved = false; });
    window.addEventListener('pointermove', function (event) {
      if (!from) return;
      if (Math.abs(event.clientX - from[0]) + Math.abs(event.clientY - from[1]) > 4) moved = true;
      if (!moved) return;
      move(from[0] - event.clientX, from[1] - event.clientY);
      from = [event.clientX, event.clientY];
    });
    window.addEventListener('pointerup', function () { from = null; });
    svg.addEventListener('click', function (event) { if (moved) event.preventDefault(); }, true);
    svg.addEventListener('dragstart', function (event) { event.preventDefault(); });
    var box = pixels();
    var unit = Math.max(width / box.width, height / box.height);
    if (unit > 1.7 || unit < 1) one();
  }
  function filter(input) {
    var table = document.getElementById(input.dataset.filters);
    var count = document.getElementById(input.dataset.filters + '-count');
    input.addEventListener('input', function () {
      var words = input.value.toLowerCase().split(/\s+/), shown = 0;
      each(table.tBodies[0].rows, function (row) {
        var text = row.textContent.toLowerCase();
        var fits = words.every(function (word) { return text.indexOf(word) >= 0; });
        row.style.display = fits ? '' : 'none';
        if (fits) shown += 1;
      });
      if (count) count.textContent = shown + ' shown';
    });
  }
  function sortable(header) {
    header.tabIndex = 0;
    header.setAttribute('aria-sort', 'none');
    function told() {
      each(header.parentNode.cells, function (cell) {
        var name = ' ' + cell.className + ' ';
        cell.setAttribute('aria-sort', name.indexOf(' sorttable_sorted ') >= 0 ? 'ascending'
          : name.indexOf(' sorttable_sorted_reverse ') >= 0 ? 'descending' : 'none');
      });
    }
    header.addEventListener('click', function () { setTimeout(told, 0); });
    header.addEventListener('keydown', function (event) {
      if (event.key === 'Enter' || event.key === ' ') { header.click(); event.preventDefault(); }
    });
  }
  each(document.querySelectorAll('.regions-frame'), picture);
  each(document.querySelectorAll('input[data-filters]'), filter);
  each(document.querySelectorAll('table.sortable > thead th:not(.sorttable_nosort)'), sortable);
})();
"""
}
