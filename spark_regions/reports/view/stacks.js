/* A large plan's operators in stacks: those at which nothing was decided share boxes with their neighbours. */
(function (view) {
  'use strict';

  /**
   * Lists of nodes that share a box, in the order of their first: undecided neighbours of one region. If those are more than
   * `most`, all that are undecided below a node; then there are at most two boxes for each node that stands alone, and one more.
   *
   * @param nodes in pre-order: every parent comes before its children
   * @param parentOf a node, undefined for the root
   * @param alone whether a node has a box of its own
   */
  view.stacks = function (nodes, {parentOf, alone, region, most}) {
    const byRegion = stacked(true);
    return byRegion.length <= most ? byRegion : stacked(false);

    function stacked(withinRegions) {
      const units = [];
      const unitOf = new Map();
      const under = new Map();
      nodes.forEach(node => {
        const parent = parentOf(node);
        const below = parent && !alone(node) && alone(parent);
        let unit;
        if (below) unit = withinRegions ? undefined : under.get(parent);
        else if (parent && !alone(node) && (!withinRegions || region(parent) === region(node))) unit = unitOf.get(parent);
        if (!unit) {
          unit = [];
          units.push(unit);
          if (below) under.set(parent, unit);
        }
        unit.push(node);
        unitOf.set(node, unit);
      });
      return units;
    }
  };
})(window.regionsView);
