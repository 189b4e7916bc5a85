/* What an operator does, in few words, out of the label that Spark gives it. */
(function (view) {
  'use strict';

  /**
   * Join Inner, (k#1L = m#2L)               inner, k = m
   * Aggregate [k#1L], [k#1L, count(1) AS c] by k
   * Filter (isnotnull(k#1L) AND (k#1L > 3)) k > 3
   * Sort [k#1L ASC NULLS FIRST], true       k ASC
   *
   * @returns empty for operators of which the name says enough
   */
  view.operatorWords = function (operator, label) {
    const text = (label || '').replace(/#\d+L?/g, '');
    const space = text.indexOf(' ');
    const rest = space < 0 ? '' : text.slice(space).trim();
    const comma = rest.indexOf(',');
    switch (operator) {
      case 'Join':
        return (comma < 0 ? [rest] : [rest.slice(0, comma), opened(rest.slice(comma + 1))])
          .map((part, i) => (i ? part : part.toLowerCase())).filter(Boolean).join(', ');
      case 'Aggregate': return rest.includes('], [') ? `by ${list(rest)}` : 'over all rows';
      case 'Filter': return condition(rest);
      case 'Sort': return list(rest).replace(/ NULLS (FIRST|LAST)/g, '');
      case 'GlobalLimit':
      case 'LocalLimit': return `${rest} rows`;
      default: return '';
    }
  };

  const list = text => text.replace(/^\[/, '').split(']')[0];

  /** That a column is not null goes without saying where something else is said. */
  function condition(text) {
    const parts = [];
    for (let open = [opened(text)]; open.length;) {
      const part = opened(open.pop());
      const at = outerAnd(part);
      if (at < 0) parts.push(part);
      else open.push(part.slice(at + 5), part.slice(0, at));
    }
    const telling = parts.filter(part => !/^isnotnull\([^()]*\)$/.test(part));
    return (telling.length ? telling : parts).join(' AND ');
  }

  /** Where the first of `wanted` outside of all brackets begins, -1 for nowhere. */
  function outside(text, wanted) {
    let depth = 0;
    for (let i = 0; i < text.length; i += 1) {
      if (text[i] === '(') depth += 1;
      else if (text[i] === ')') depth -= 1;
      if (depth === 0 && wanted(i)) return i;
    }
    return -1;
  }

  const outerAnd = text => outside(text, i => text.startsWith(' AND ', i));

  /** Without the pairs of brackets around all of it. */
  function opened(text) {
    let trimmed = text.trim();
    while (trimmed.startsWith('(') && trimmed.endsWith(')') && outside(trimmed, () => true) === trimmed.length - 1) {
      trimmed = trimmed.slice(1, -1).trim();
    }
    return trimmed;
  }
})(window.regionsView);
