"""A package of somebody else, as `cockpit help extend` describes it."""
