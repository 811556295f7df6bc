// A scope as the fields of the request, as the page's address and as the address of its stream.

/** The parameters of a stream, in their canonical order. */
export const FIELDS = Object.freeze([
  'target', 'group', 'version', 'resource', 'namespace', 'name', 'labelSelector', 'projection',
]);

/** @typedef {Partial<Record<typeof FIELDS[number], string>>} Scope */

/**
 * Reads a scope out of a query or a fragment. An empty value is an absent one; fields that no scope has are left out.
 *
 * @param {string} text with or without a leading `?` or `#`
 * @returns {Scope}
 */
export function parseScope(text) {
  const parameters = new URLSearchParams(text.replace(/^[?#]/, ''));
  const scope = {};
  for (const field of FIELDS) {
    const value = parameters.get(field);
    if (value !== null && value.trim() !== '') {
      scope[field] = value.trim();
    }
  }
  return scope;
}

/**
 * The canonical query of a scope.
 *
 * @param {Scope} scope
 */
export function formatScope(scope) {
  return FIELDS
    .filter((field) => scope[field])
    .map((field) => `${field}=${encodeURIComponent(scope[field])}`)
    .join('&');
}

/** Whether a scope has what every request needs; all else is for the gateway to judge. */
export function isComplete(scope) {
  return Boolean(scope.version && scope.resource);
}

/**
 * The scope of the page's address: its fragment, or its query where there is no fragment.
 *
 * @param {{ hash: string, search: string }} location
 */
export function scopeOfAddress(location) {
  return parseScope(location.hash.length > 1 ? location.hash : location.search);
}

/** The address of the stream of a scope. */
export function streamAddress(streamPath, scope) {
  return `${streamPath}?${formatScope(scope)}`;
}

/** A scope in a line of words: `apps/v1 deployments in shop`. */
export function describeScope(scope) {
  const version = scope.group ? `${scope.group}/${scope.version}` : scope.version;
  const parts = [`${version} ${scope.resource}`];
  if (scope.name) {
    parts.push(`“${scope.name}”`);
  }
  if (scope.namespace) {
    parts.push(`in ${scope.namespace}`);
  }
  if (scope.labelSelector) {
    parts.push(`where ${scope.labelSelector}`);
  }
  if (scope.target) {
    parts.push(`on ${scope.target}`);
  }
  return parts.join(' ');
}
