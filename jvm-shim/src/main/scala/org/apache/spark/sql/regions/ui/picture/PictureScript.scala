package org.apache.spark.sql.regions.ui.picture

import scala.xml.{Node, NodeSeq, Unparsed}

import org.apache.spark.ui.CspNonce

/** Looks and behaviour of the tab's pages, inline: a jar from spark.jars cannot serve files, and nothing is fetched from elsewhere. */
private[ui] object PictureScript {

  /**
   * Buttons, and the window that a picture is moved about in.
   *
   * @param decided boxes at which something was done, to go from one to the next
   * @param noun what such a box shows
   */
  def framed(id: String, picture: Node, height: Int, decided: Int = 0, noun: String = "decision"): NodeSeq =
    <div class="regions-frame" data-picture={id}>
      <div class="btn-group btn-group-sm regions-buttons" role="group" aria-label="Zoom controls">
        <button type="button" class="btn btn-light border" data-zoom="out" aria-label="Zoom out" title="Zoom out (-)">−</button>
        <button type="button" class="btn btn-light border" data-zoom="fit" aria-label="Fit the whole picture" title="Fit (0)">fit</button>
        <button type="button" class="btn btn-light border" data-zoom="one" aria-label="Original size" title="Original size (1)">1:1</button>
        <button type="button" class="btn btn-light border" data-zoom="in" aria-label="Zoom in" title="Zoom in (+)">+</button>
        {
      if (decided == 0) NodeSeq.Empty
      else <button type="button" class="btn btn-light border" data-zoom="next" title={
        s"Next $noun (n)"
      }>next {noun}</button>
    }
      </div>
      <span class="visually-hidden" role="status" aria-live="polite" data-told="true"></span>
      <div class="regions-window" style={s"height: ${height}px"}>{picture}</div>
      <p class="text-muted small mb-1">Drag or use the arrow keys to move, the buttons, + and − or Ctrl + wheel to zoom{
      if (decided == 0) "" else s", n for the next $noun ($decided)"
    }.</p>
    </div>

  def style: Node = <style>{Unparsed(css)}</style>

  def script: Node = <script nonce={CspNonce.get}>{Unparsed(code)}</script>

  /** By what was done: light, dark, line. */
  private val kinds = Seq(
    ("read", "#dbeafe", "#1e3a5f", "#2563eb"),
    ("kept", "#fef3c7", "#4a3a10", "#b45309"),
    ("shared", "#ede9fe", "#342a5e", "#7c3aed"),
    ("would", "#e0f2f1", "#12444d", "#0f766e")
  )

  private val css: String = {
    val colours = kinds.map { case (kind, light, dark, line) =>
      s""".regions-is-$kind > rect:not(.regions-share), .regions-key-$kind { fill: $light; background: $light; stroke: $line;
         |  border-color: $line; stroke-width: 2.5px; }
         |[data-bs-theme=dark] .regions-is-$kind > rect:not(.regions-share), [data-bs-theme=dark] .regions-key-$kind {
         |  fill: $dark; background: $dark; }""".stripMargin
    }.mkString("\n")
    s"""
.regions-window { border: 1px solid var(--bs-border-color); border-radius: 4px; overflow: hidden; }
.regions-window:focus-within { outline: 2px solid var(--bs-link-color); }
.regions-picture { width: 100%; height: 100%; cursor: grab; outline: none; touch-action: none; }
.regions-picture text { font: 12px sans-serif; fill: var(--bs-body-color); }
.regions-picture .regions-name { font-weight: bold; }
.regions-picture .regions-number { font-weight: bold; text-anchor: end; }
.regions-picture .regions-badge { font-weight: bold; }
.regions-picture .regions-fact { font-size: 11px; }
.regions-picture .regions-edge-label { font-size: 11px; paint-order: stroke; stroke: var(--bs-body-bg); stroke-width: 3px; }
.regions-box > rect { fill: var(--bs-body-bg); stroke: var(--bs-secondary-color); stroke-width: 1px; }
.regions-tone-even > rect { fill: var(--bs-secondary-bg); }
.regions-tone-some > rect { fill: var(--bs-tertiary-bg); }
.regions-tone-much > rect { fill: var(--bs-secondary-bg); }
.regions-tone-most > rect { fill: var(--bs-secondary-bg); stroke: var(--bs-body-color); stroke-width: 2px; }
$colours
.regions-is-lost > rect:not(.regions-share) { stroke: var(--bs-danger); stroke-width: 3px; stroke-dasharray: 3 3; }
.regions-idle { opacity: 0.6; }
.regions-idle > rect { stroke-dasharray: 5 4; }
.regions-box > rect.regions-share { fill: var(--bs-danger); stroke: none; opacity: 0.75; }
.regions-picture .regions-is-declined .regions-badge { font-weight: normal; fill: var(--bs-secondary-color); }
.regions-box.regions-here > rect:not(.regions-share) { stroke: var(--bs-link-color); stroke-width: 5px; }
:target { outline: 2px solid var(--bs-link-color); }
g:target { outline: none; }
.regions-fold { margin: .75rem 0; }
.regions-fold > summary { cursor: pointer; }
.regions-fold .regions-fold { margin: .25rem 0 .25rem 1.2rem; }
.regions-error { color: var(--bs-danger); max-width: 30rem; overflow: hidden; text-overflow: ellipsis; display: -webkit-box;
  -webkit-line-clamp: 2; -webkit-box-orient: vertical; }
th[aria-sort=none] { cursor: pointer; }
th[aria-sort=none]::after { content: "\\00a0\\2195" / ""; color: var(--bs-secondary-color); font-weight: normal; opacity: .6; }
.regions-edge { fill: none; stroke: var(--bs-secondary-color); stroke-width: 1.2px; }
.regions-edge.regions-kept { stroke-width: 3px; stroke-dasharray: 7 3; }
.regions-tip { fill: var(--bs-secondary-color); }
.regions-key { display: inline-block; border: 1px solid; border-radius: 4px; padding: 0 .4em; margin-right: .3em; }
.regions-bar { display: inline-block; height: .8em; background: var(--bs-link-color); vertical-align: baseline; }
.regions-digest { font-family: monospace; }
.regions-cards { display: flex; flex-wrap: wrap; gap: .5rem; margin: 0 0 .75rem 0; padding: 0; }
.regions-cards > div { border: 1px solid var(--bs-border-color); border-radius: 4px; padding: .3rem .7rem; min-width: 7rem; }
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
    // The focus is seen, and as much around it as there is.
    function around(unit) {
      var area = pixels(), w = area.width * unit, h = area.height * unit;
      function side(focus, length, shown) {
        return length < shown ? (length - shown) / 2 : Math.min(Math.max(0, focus - shown / 2), length - shown);
      }
      view = {x: side(+svg.dataset.x, width, w), y: side(+svg.dataset.y, height, h), w: w, h: h};
      apply();
    }
    function one() { around(1); }
    var shown = false;
    function show(box) {
      shown = true;
      var area = pixels(), unit = Math.min(scale(), 1 / 0.75);
      var w = area.width * unit, h = area.height * unit;
      view = {x: +box.dataset.x - w / 2, y: +box.dataset.y - h / 2, w: w, h: h};
      apply();
      each(svg.querySelectorAll('.regions-here'), function (other) { other.classList.remove('regions-here'); });
      box.classList.add('regions-here');
      frame.querySelector('[data-told]').textContent = box.querySelector('title').textContent;
    }
    var decided = svg.querySelectorAll('[data-decided]'), at = -1;
    function next() {
      if (!decided.length) return;
      at = (at + 1) % decided.length;
      show(decided[at]);
    }
    function move(dx, dy) { var unit = scale(); view.x += dx * unit; view.y += dy * unit; apply(); }
    var actions = {'in': function () { zoom(0.8); }, out: function () { zoom(1.25); }, fit: fit, one: one, next: next};
    each(frame.querySelectorAll('[data-zoom]'), function (button) {
      button.addEventListener('click', function () { actions[button.dataset.zoom](); });
    });
    svg.addEventListener('keydown', function (event) {
      var keys = {'+': 'in', '=': 'in', '-': 'out', '0': 'fit', '1': 'one', n: 'next'};
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
    // As a whole where that can be read, else what matters most in a size that can.
    function open() {
      var area = pixels();
      if (!area.width) return;
      var unit = Math.max(width / area.width, height / area.height);
      if (unit > 2) around(1 / 0.75);
      else if (unit < 1) one();
    }
    open();
    var fold = frame.closest('details');
    if (fold && !fold.open) fold.addEventListener('toggle', function () { if (!shown) open(); }, {once: true});
    svg.showBox = show;
  }
  /** A link to a box moves the picture to it; a row is taken out of its fold. */
  function follow() {
    var target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    for (var fold = target.closest('details'); fold; fold = fold.parentNode.closest('details')) fold.open = true;
    if (target.ownerSVGElement && target.ownerSVGElement.showBox) {
      target.ownerSVGElement.showBox(target);
      target.ownerSVGElement.parentNode.scrollIntoView({block: 'center'});
    } else target.scrollIntoView({block: 'center'});
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
  window.addEventListener('hashchange', follow);
  document.addEventListener('click', function (event) {
    var link = event.target.closest && event.target.closest('a[href^="#"]');
    // The same link once more changes no hash.
    if (link && link.getAttribute('href') === location.hash) { event.preventDefault(); follow(); }
  });
  follow();
  each(document.querySelectorAll('input[data-filters]'), filter);
  each(document.querySelectorAll('table.sortable > thead th:not(.sorttable_nosort)'), sortable);
})();
"""
}
