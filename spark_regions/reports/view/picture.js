/* A graph as SVG, with buttons to move about in it and a way from decision to decision. */
(function (view) {
  'use strict';
  const {el, svg} = view;
  const WIDTH = 232;
  const LINE = 15;
  const MARGIN = 16;
  const GAP_X = 22;
  const GAP_Y = 32;
  const MOST_CHARACTERS = 37;

  /** Kinds of boxes at which something was done, or should have been. */
  view.DECIDED = ['read', 'kept', 'shared', 'would', 'lost'];
  /** Pictures of the page: {canvas, has: whether a box is in it, which takes it out of a stack, show(box), opened: once it can be seen}. */
  view.pictures = [];

  /**
   * A box is an operator as it is drawn:
   * {id, lines: the first in bold, corner, tone, badge: what was done here, kind: of the badge, which colours the box,
   *  idle: not computed, hint: for pointer and screen reader, anchor: where a click leads, share: of all the time,
   *  weight: the heavier, the more worth being looked at where nothing was done, unfold: shows what it stands for}.
   * An arrow is {from, to, label, kept: whether rows are materialized between the two}.
   *
   * @param id of the SVG element
   * @param title one line that says what is drawn; summary: names the table with the same facts
   * @param drawn () => {boxes, arrows}, again after something was unfolded
   * @param noun what a box shows at which something was done
   * @param folding of a picture that does not show all at once: {all: number of operators, reveal(id), toggle(all)}
   */
  view.picture = function ({id, title, summary, drawn, noun = 'decision', folding = null}) {
    const canvas = svg('svg', {id, class: 'regions-picture', role: 'img', tabindex: 0,
      'aria-labelledby': `${id}-title ${id}-desc`});
    const announced = el('span', {class: 'visually-hidden', role: 'status', 'aria-live': 'polite', 'data-told': 'true'});
    const acts = {in: () => port.zoom(0.8), out: () => port.zoom(1.25), fit: () => port.fit(), one: () => port.around(focus), next, all};
    const port = view.viewport(canvas,
      {'+': acts.in, '=': acts.in, '-': acts.out, 0: acts.fit, 1: acts.one, n: acts.next});
    let placed = new Map();
    let focus = {x: 0, y: 0};
    let height = 0;
    let at = -1;
    let shown = false;
    render();

    const decisions = Array.from(placed.values()).filter(box => box.decided).length;
    const frame = el('div', {class: 'regions-frame', 'data-picture': id},
      el('div', {class: 'btn-group btn-group-sm regions-buttons', role: 'group', 'aria-label': 'Zoom controls'},
        button('out', '−', 'Zoom out', 'Zoom out (-)'), button('fit', 'fit', 'Fit the whole picture', 'Fit (0)'),
        button('one', '1:1', 'Original size', 'Original size (1)'), button('in', '+', 'Zoom in', 'Zoom in (+)'),
        decisions ? button('next', `next ${noun}`, null, `Next ${noun} (n)`) : null,
        folding ? button('all', `all ${folding.all} operators`, null, 'Show every operator in a box of its own', false) : null),
      announced, el('div', {class: 'regions-window'}, canvas),
      el('p', {class: 'text-muted small mb-1'}, 'Drag or use the arrow keys to move, the buttons, + and − or Ctrl + wheel to zoom',
        decisions ? `, n for the next ${noun} (${decisions})` : '', folding ? ', click a stack of operators to open it' : '', '.'));
    canvas.parentNode.style.height = `${Math.max(200, Math.min(640, height))}px`;
    view.pictures.push({canvas, has: box => placed.has(box) || Boolean(folding && folding.reveal(box)), show, opened});
    return frame;

    function button(act, text, label, hint, pressed) {
      const made = el('button', {type: 'button', class: 'btn btn-light border', 'data-zoom': act, 'aria-label': label,
        'aria-pressed': pressed === undefined ? null : String(pressed), title: hint}, text);
      made.addEventListener('click', () => acts[act](made));
      return made;
    }

    function render() {
      const {boxes, arrows} = drawn();
      const lines = boxes.reduce((most, box) => Math.max(most, box.lines.length + (box.badge ? 1 : 0)), 1);
      const tall = 12 + lines * LINE;
      const layout = view.layered(boxes.length, arrows.map(arrow => [arrow.from, arrow.to]),
        {boxWidth: WIDTH, boxHeight: tall, gapX: GAP_X, gapY: GAP_Y});
      const centre = i => ({x: layout.x[i] + WIDTH / 2 + MARGIN, y: layout.y[i] + tall / 2 + MARGIN});
      const main = mostTelling(boxes);
      const width = layout.width + 2 * MARGIN;
      height = layout.height + 2 * MARGIN;
      focus = main < 0 ? {x: 0, y: 0} : centre(main);
      placed = new Map();
      canvas.textContent = '';
      canvas.append(svg('title', {id: `${id}-title`}, title), svg('desc', {id: `${id}-desc`}, summary),
        svg('defs', {}, svg('marker', {id: `${id}-tip`, viewBox: '0 0 8 8', refX: 7, refY: 4, markerWidth: 9, markerHeight: 9,
          markerUnits: 'userSpaceOnUse', orient: 'auto'}, svg('path', {d: 'M0,0 L8,4 L0,8 z', class: 'regions-tip'}))),
        svg('g', {transform: `translate(${MARGIN},${MARGIN})`},
          arrows.map((arrow, i) => drawnArrow(arrow, layout, layout.bends[i], tall)),
          boxes.map((box, i) => drawnBox(box, layout.x[i], layout.y[i], tall, centre(i)))));
      canvas.setAttribute('data-width', round(width));
      canvas.setAttribute('data-height', round(height));
      port.hold({width, height});
      port.fit();
    }

    function drawnArrow(arrow, layout, bends, tall) {
      const start = [layout.x[arrow.from] + WIDTH / 2, layout.y[arrow.from] + tall];
      const end = [layout.x[arrow.to] + WIDTH / 2, layout.y[arrow.to]];
      const points = [start, ...bends, end];
      const path = points.slice(1).map(([x, y], i) => {
        const [x0, y0] = points[i];
        const middle = round((y0 + y) / 2);
        return `C${round(x0)},${middle} ${round(x)},${middle} ${round(x)},${round(y)}`;
      });
      const [x, y] = [(points[0][0] + points[1][0]) / 2, (points[0][1] + points[1][1]) / 2];
      return [
        svg('path', {d: `M${round(start[0])},${round(start[1])} ${path.join(' ')}`, 'marker-end': `url(#${id}-tip)`,
          class: arrow.kept ? 'regions-edge regions-kept' : 'regions-edge'}),
        arrow.label ? svg('text', {x: round(x + 5), y: round(y + 4), class: 'regions-edge-label'}, arrow.label) : null,
      ];
    }

    function drawnBox(box, x, y, tall, centre) {
      const decided = view.DECIDED.includes(box.kind);
      const classes = ['regions-box', box.tone && `regions-tone-${box.tone}`, box.kind && `regions-is-${box.kind}`,
        box.idle && 'regions-idle', box.unfold && 'regions-stack'];
      const group = svg('g', {id: box.id, transform: `translate(${round(x)},${round(y)})`,
        class: classes.filter(Boolean).join(' '), 'data-x': round(centre.x), 'data-y': round(centre.y),
        'data-decided': decided ? 'true' : null},
        svg('title', {}, box.hint), svg('rect', {width: WIDTH, height: tall, rx: 5}),
        box.lines.map((line, i) => svg('text', {x: 8, y: LINE * (i + 1) + 2, class: i ? 'regions-fact' : 'regions-name'},
          // Bold letters are wider.
          i ? cut(line, MOST_CHARACTERS) : cutName(line, MOST_CHARACTERS - (box.corner || '').length - 6))),
        box.corner ? svg('text', {x: WIDTH - 8, y: LINE + 2, class: 'regions-number'}, box.corner) : null,
        box.badge ? svg('text', {x: 8, y: tall - 9, class: 'regions-badge'}, cut(box.badge, MOST_CHARACTERS)) : null,
        // Along the lower edge: its part of the time of all.
        box.share >= 0.005 ? svg('rect', {class: 'regions-share', x: 4, y: tall - 5, height: 3, rx: 1,
          width: round((WIDTH - 8) * Math.min(1, box.share))}) : null);
      placed.set(box.id, {group, x: centre.x, y: centre.y, hint: box.hint, decided});
      const link = svg('a', {href: box.anchor, tabindex: -1}, group);
      if (box.unfold) link.addEventListener('click', event => {
        event.preventDefault();
        const first = box.unfold();
        render();
        show(first);
      });
      return link;
    }

    function show(box) {
      if (!placed.has(box)) render();
      const found = placed.get(box);
      shown = true;
      port.centre(found);
      placed.forEach(other => other.group.classList.toggle('regions-here', other === found));
      announced.textContent = found.hint;
    }

    function next() {
      const decided = Array.from(placed).filter(([, box]) => box.decided);
      if (!decided.length) return;
      at = (at + 1) % decided.length;
      show(decided[at][0]);
    }

    function all(pressed) {
      const every = pressed.getAttribute('aria-pressed') !== 'true';
      pressed.setAttribute('aria-pressed', String(every));
      folding.toggle(every);
      render();
      opened();
    }

    function opened() {
      const hidden = !port.opened(focus) && canvas.closest('details:not([open])');
      if (hidden) hidden.addEventListener('toggle', () => { if (!shown) opened(); }, {once: true});
    }
  };

  /** What to look at where not all can be seen: the first at which something was done, else the heaviest. */
  function mostTelling(boxes) {
    const done = boxes.findIndex(box => view.DECIDED.includes(box.kind) && box.kind !== 'lost');
    if (done >= 0) return done;
    const lost = boxes.findIndex(box => box.kind === 'lost');
    const weight = box => box.weight || 0;
    return lost >= 0 ? lost : boxes.reduce((best, box, i) => (best < 0 || weight(box) > weight(boxes[best]) ? i : best), -1);
  }

  const cut = (text, room) => (text.length <= room ? text : `${text.slice(0, room - 1)}…`);

  /** The number at the end of a name stays. */
  function cutName(name, room) {
    const at = name.lastIndexOf(' (');
    if (name.length <= room || at < 0 || name.length - at > room / 2) return cut(name, room);
    return cut(name.slice(0, at), room - (name.length - at)) + name.slice(at);
  }

  const round = number => Math.round(number * 10) / 10;
})(window.regionsView);
