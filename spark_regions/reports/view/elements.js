/*
 * What every page is made of: elements, figures as people read them, cards, folds and tables.
 * Text from data only ever becomes a text node or the value of an attribute that is no address and no handler.
 */
(function (view) {
  'use strict';
  const SVG = 'http://www.w3.org/2000/svg';

  function fill(node, attributes, children) {
    Object.entries(attributes || {}).forEach(([name, value]) => {
      if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? '' : value);
    });
    append(node, children);
    return node;
  }

  /** Children are nodes, texts, and lists of them at any depth; null and empty texts are left out. */
  function append(node, children) {
    children.forEach(child => {
      if (Array.isArray(child)) append(node, child);
      else if (child !== null && child !== undefined && child !== '') node.append(child);
    });
  }

  const el = (name, attributes, ...children) => fill(document.createElement(name), attributes, children);
  const svg = (name, attributes, ...children) => fill(document.createElementNS(SVG, name), attributes, children);

  // Data and figures; null is unknown everywhere.

  const list = value => (Array.isArray(value) ? value : []);

  /** Items by their key, in the order of the first of each. */
  function grouped(items, key) {
    const groups = new Map();
    items.forEach(item => {
      const group = groups.get(key(item));
      if (group) group.push(item);
      else groups.set(key(item), [item]);
    });
    return groups;
  }

  const known = value => value !== null && value !== undefined;
  const count = value => Number(value).toLocaleString('en-US');
  const counted = (number, one, several) => `${number} ${number === 1 ? one : several || one + 's'}`;
  const percent = share => `${(100 * share).toFixed(0)} %`;

  /** Of seconds: 0 s, 20 ms, 2.6 s, 310 s. */
  function seconds(value) {
    const size = Math.abs(value);
    if (value === 0) return '0 s';
    return size >= 100 ? `${value.toFixed(0)} s` : size >= 0.1 ? `${value.toFixed(1)} s` : `${(value * 1000).toFixed(0)} ms`;
  }

  const millis = value => seconds(value / 1000);

  /** Of seconds: as above, then 5 min, 7 h, 7 d. */
  function long(value) {
    if (value < 120) return seconds(value);
    return value < 7200 ? `${(value / 60).toFixed(0)} min`
      : value < 172800 ? `${(value / 3600).toFixed(0)} h` : `${(value / 86400).toFixed(0)} d`;
  }

  /** Three or four digits: 591 B, 98.8 KiB, 132 KiB. */
  function bytes(value) {
    if (Math.abs(value) < 1000) return `${value.toFixed(0)} B`;
    const units = ['KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
    let number = value / 1024;
    let at = 0;
    while (Math.abs(number) >= 999.5 && at < units.length - 1) {
      number /= 1024;
      at += 1;
    }
    return `${number.toFixed(Math.abs(number) < 99.95 ? 1 : 0)} ${units[at]}`;
  }

  /** A setting or counter: bytes and milliseconds by the end of its name, or of its value. */
  function setting(name, value) {
    const [, number, unit] = /^([0-9]{1,18})(b|ms|)$/.exec(value) || [];
    if (number === undefined) return value;
    if (unit === 'b' || (unit === '' && /bytes$/i.test(name))) return bytes(Number(number));
    if (unit === 'ms') return long(number / 1000);
    return /Millis$/.test(name) ? millis(Number(number)) : value;
  }

  /** In the time zone of the driver, as on Spark's own pages. */
  function date(milliseconds) {
    const parts = {year: 'numeric', month: '2-digit', day: '2-digit', hour: '2-digit', minute: '2-digit', second: '2-digit'};
    const format = timeZone => new Intl.DateTimeFormat('en-CA', Object.assign({hourCycle: 'h23', timeZone}, parts));
    let chosen;
    try {
      chosen = format(view.zone);
    } catch (unknownZone) {
      if (!(unknownZone instanceof RangeError)) throw unknownZone;
      chosen = format(undefined);
    }
    const found = {};
    chosen.formatToParts(new Date(milliseconds)).forEach(part => { found[part.type] = part.value; });
    return `${found.year}/${found.month}/${found.day} ${found.hour}:${found.minute}:${found.second}`;
  }

  // Cells: what is shown, and what it is sorted by where that is not its text.

  const cell = (show, key) => ({show, key});
  const line = text => el('span', {class: 'regions-line'}, text);
  const unknown = (show = '') => cell(show, -1);
  const cells = {
    count: value => (known(value) ? cell(count(value), value) : unknown()),
    seconds: value => (known(value) ? cell(line(seconds(value)), value) : unknown()),
    millis: value => cell(line(millis(value || 0)), value || 0),
    bytes: value => (known(value) ? cell(line(bytes(value)), value) : unknown()),
    time: value => (value > 0 ? cell(line(date(value)), value) : cell('', 0)),
    unknown,
  };

  /** Long names by their beginning; the whole is there for a pointer, a screen reader, and to be copied. */
  function digest(name) {
    if (name.length <= 12) return el('span', {class: 'regions-digest'}, name);
    return el('span', {class: 'regions-digest', title: name}, `${name.slice(0, 11)}…`);
  }

  const sentence = code => (view.reasons || {})[code] || '';
  const told = (code, detail) => [sentence(code), detail].filter(Boolean).join(': ');

  /** What a code means, then the code. */
  function reason(code, detail) {
    const words = told(code, detail);
    if (!words) return el('code', {}, code);
    return [`${words} `, code ? el('code', {class: 'small text-muted'}, code) : null];
  }

  // Parts of a page.

  const heading = (title, number) => el('h4', {class: 'mt-3'}, title, known(number) ? ` (${number})` : '');
  const muted = (...content) => el('p', {class: 'text-muted'}, content);
  const small = (...content) => el('div', {class: 'small text-muted'}, content);

  /** Closed until it is asked for. */
  const fold = (title, body, attributes = {}) =>
    el('details', Object.assign({class: 'regions-fold'}, attributes), el('summary', {}, title), body);
  const section = (title, number, body) => fold(el('h4', {class: 'd-inline'}, `${title} (${number})`), body);

  /** Terms with their values, and small print; lists of three. */
  const cards = facts => el('dl', {class: 'regions-cards'}, facts.filter(Boolean).map(([term, value, more]) =>
    el('div', {}, el('dt', {}, term), el('dd', {}, value, more ? el('small', {}, more) : null))));

  /** How an execution stands, as Spark's own pages show it. */
  function badge(status, sinceStart) {
    const [colour, words] = {
      ok: ['text-bg-success', 'ok'],
      failed: ['text-bg-danger', 'failed'],
      running: ['text-bg-primary', known(sinceStart) ? `running for ${long(sinceStart)}` : 'running'],
      planned: ['text-bg-secondary', 'only planned'],
    }[status] || ['text-bg-secondary', 'not ended'];
    return el('span', {class: `badge ${colour}`}, words);
  }

  /**
   * A table that a press on a column's head, or Enter on it, sorts.
   *
   * @param columns names, or [name, what it means]
   * @param rows lists of cells, texts or nodes
   * @param filtered whether a field above narrows the rows
   * @param levels of a tree: how deep each row stands below those before it
   */
  function table({id, caption, columns, rows, filtered = false, levels = null, empty = 'Nothing yet.'}) {
    if (!rows.length) return el('p', {class: 'text-muted', id}, empty);
    const heads = columns.map(column => {
      const [name, hint] = Array.isArray(column) ? column : [column];
      return el('th', {scope: 'col', tabindex: 0, 'aria-sort': 'none', title: hint || null}, name);
    });
    const body = el('tbody', {}, rows.map((row, i) => el('tr', {'data-level': levels && levels[i]}, row.map((each, at) => {
      const {show, key} = each && each.show !== undefined ? each : {show: each};
      if (!levels || at) return el('td', {'data-key': key}, show);
      const first = el('td', {'data-key': key, class: 'regions-branch'}, levels[i + 1] > levels[i] ? toggle() : null, show);
      first.style.setProperty('--level', levels[i]);
      return first;
    }))));
    heads.forEach((head, at) => {
      head.addEventListener('click', () => sort(body, heads, at));
      head.addEventListener('keydown', event => {
        if (event.key !== 'Enter' && event.key !== ' ') return;
        head.click();
        event.preventDefault();
      });
    });
    const whole = el('div', {class: 'table-responsive'},
      el('table', {id, class: 'table table-bordered table-hover table-sm table-striped regions-table'},
        el('caption', {class: 'visually-hidden'}, caption), el('thead', {}, el('tr', {}, heads)), body));
    return filtered ? [filter(id, body, rows.length), whole] : whole;
  }

  function sort(body, heads, at) {
    const descending = heads[at].getAttribute('aria-sort') === 'ascending';
    heads.forEach((head, i) => head.setAttribute('aria-sort', i !== at ? 'none' : descending ? 'descending' : 'ascending'));
    const keyed = Array.from(body.rows, row => {
      const cell = row.cells[at];
      return {row, level: level(row), key: cell.hasAttribute('data-key') ? cell.getAttribute('data-key') : cell.textContent.trim()};
    });
    const numbers = keyed.every(({key}) => key !== '' && !isNaN(key));
    const order = numbers ? (a, b) => a.key - b.key : (a, b) => a.key.localeCompare(b.key);
    const before = descending ? (a, b) => order(b, a) : order;
    /** Each with what stands below it. */
    const ordered = all => {
      const groups = [];
      all.forEach(each => (each.level > all[0].level ? groups[groups.length - 1].push(each) : groups.push([each])));
      return groups.sort(([a], [b]) => before(a, b)).flatMap(([first, ...below]) => [first, ...ordered(below)]);
    };
    ordered(keyed).forEach(({row}) => body.append(row));
  }

  const level = row => Number(row.getAttribute('data-level'));

  /** Shows what stands below its row, or not. */
  function toggle() {
    const button = el('button', {type: 'button', class: 'regions-toggle', 'aria-expanded': 'true', 'aria-label': 'What goes on from it'});
    button.addEventListener('click', () => {
      const open = button.getAttribute('aria-expanded') !== 'true';
      const own = button.closest('tr');
      button.setAttribute('aria-expanded', String(open));
      for (let row = own.nextElementSibling; row && level(row) > level(own); row = row.nextElementSibling) {
        row.classList.toggle('regions-folded', !open);
        row.querySelectorAll('.regions-toggle').forEach(inner => inner.setAttribute('aria-expanded', String(open)));
      }
    });
    return button;
  }

  function filter(id, body, rows) {
    const field = el('input', {type: 'search', id: `${id}-filter`, class: 'form-control form-control-sm regions-filter',
      placeholder: 'words, all of which a row has'});
    const number = el('span', {id: `${id}-count`, class: 'text-muted ms-2', role: 'status', 'aria-live': 'polite'},
      `${rows} shown`);
    field.addEventListener('input', () => {
      const words = field.value.toLowerCase().split(/\s+/);
      // From below: a row of a tree stays with what is found below it.
      let needed = 0;
      const shown = Array.from(body.rows).reverse().filter(row => {
        const text = row.textContent.toLowerCase();
        const found = words.every(word => text.includes(word));
        row.hidden = !found && level(row) >= needed;
        if (!row.hidden) needed = level(row);
        return found;
      });
      number.textContent = `${shown.length} shown`;
    });
    return el('div', {class: 'mb-2'}, el('label', {class: 'me-2', for: `${id}-filter`}, 'Filter'), field, number);
  }

  Object.assign(view, {
    el, svg, list, grouped, known, count, counted, percent, seconds, millis, long, bytes, setting, date, cell, cells, digest, sentence,
    told, reason, heading, muted, small, fold, section, cards, badge, table,
  });
})(window.regionsView = window.regionsView || {});
