/* The window that a picture is moved about in: by dragging and arrow keys, zoomed by keys and Ctrl with the wheel. */
(function (view) {
  'use strict';
  const ARROWS = {ArrowLeft: [-60, 0], ArrowRight: [60, 0], ArrowUp: [0, -60], ArrowDown: [0, 60]};
  /** Pixels of the screen to a pixel of the picture, below which its text cannot be read. */
  const READABLE = 0.75;

  /**
   * @param canvas the SVG element
   * @param keys of the keyboard, to what they do
   */
  view.viewport = function (canvas, keys) {
    let size = {width: 0, height: 0};
    let seen = {x: 0, y: 0, w: 0, h: 0};
    listen();
    return {fit, around, centre, zoom, opened, hold: drawn => { size = drawn; }};

    function look(x, y, w, h) {
      seen = {x, y, w, h};
      canvas.setAttribute('viewBox', [x, y, w, h].join(' '));
    }

    function area() { return canvas.getBoundingClientRect(); }
    function scale() { return Math.max(seen.w / area().width, seen.h / area().height); }
    function fit() { look(0, 0, size.width, size.height); }

    function zoom(factor, px = 0.5, py = 0.5) {
      const box = area();
      const unit = scale();
      const next = Math.min(Math.max(unit * factor, 0.2), Math.max(size.width / box.width, size.height / box.height, 1) * 1.2);
      const [w, h] = [box.width * next, box.height * next];
      const x = seen.x + seen.w / 2 + (px - 0.5) * box.width * unit;
      const y = seen.y + seen.h / 2 + (py - 0.5) * box.height * unit;
      look(x - px * w, y - py * h, w, h);
    }

    /** The point is seen, and as much around it as there is. */
    function around({x, y}, unit = 1) {
      const [w, h] = [area().width * unit, area().height * unit];
      const side = (middle, length, part) =>
        (length < part ? (length - part) / 2 : Math.min(Math.max(0, middle - part / 2), length - part));
      look(side(x, size.width, w), side(y, size.height, h), w, h);
    }

    function centre({x, y}) {
      const unit = Math.min(scale(), 1 / READABLE);
      const [w, h] = [area().width * unit, area().height * unit];
      look(x - w / 2, y - h / 2, w, h);
    }

    /** As a whole where that can be read, else what matters most in a size that can; false while nothing is seen at all. */
    function opened(focus) {
      if (!area().width) return false;
      const unit = Math.max(size.width / area().width, size.height / area().height);
      if (unit > 2) around(focus, 1 / READABLE);
      else if (unit < 1) around(focus);
      return true;
    }

    function move(dx, dy) {
      const unit = scale();
      look(seen.x + dx * unit, seen.y + dy * unit, seen.w, seen.h);
    }

    function listen() {
      let from = null;
      let moved = false;
      canvas.addEventListener('keydown', event => {
        if (event.ctrlKey || event.metaKey || event.altKey) return;
        if (keys[event.key]) keys[event.key]();
        else if (ARROWS[event.key]) move(...ARROWS[event.key]);
        else return;
        event.preventDefault();
      });
      canvas.addEventListener('wheel', event => {
        if (!event.ctrlKey) return;
        const box = area();
        zoom(event.deltaY > 0 ? 1.25 : 0.8, (event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height);
        event.preventDefault();
      }, {passive: false});
      canvas.addEventListener('pointerdown', event => {
        from = [event.clientX, event.clientY];
        moved = false;
      });
      window.addEventListener('pointermove', event => {
        if (!from) return;
        const [dx, dy] = [from[0] - event.clientX, from[1] - event.clientY];
        moved = moved || Math.abs(dx) + Math.abs(dy) > 4;
        if (!moved) return;
        move(dx, dy);
        from = [event.clientX, event.clientY];
      });
      window.addEventListener('pointerup', () => { from = null; });
      // A picture that was dragged is not clicked.
      canvas.addEventListener('click', event => {
        if (!moved) return;
        event.preventDefault();
        event.stopPropagation();
      }, true);
      canvas.addEventListener('dragstart', event => event.preventDefault());
    }
  };
})(window.regionsView);
