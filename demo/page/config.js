// What the gateway offers. Without `/config.json` the page works with what every gateway has.

import { parseScope, formatScope } from './scope.js';

const DEFAULT_SCOPES = [
  ['Config maps', 'version=v1&resource=configmaps&namespace=default'],
  ['Secrets', 'version=v1&resource=secrets&namespace=default'],
  ['Pods', 'version=v1&resource=pods&namespace=default'],
  ['Deployments', 'group=apps&version=v1&resource=deployments&namespace=default'],
  ['Namespaces', 'version=v1&resource=namespaces'],
];

const DEFAULTS = Object.freeze({
  targets: [],
  scopes: DEFAULT_SCOPES.map(([label, query]) => ({ label, query })),
  projections: ['krm-full/v1', 'krm-spec/v1'],
  streamPath: '/resource-stream/v1',
});

/** The kinds offered for filling in the form: group, version and resource. */
export const KNOWN_KINDS = Object.freeze([
  ['', 'v1', 'configmaps'],
  ['', 'v1', 'secrets'],
  ['', 'v1', 'pods'],
  ['', 'v1', 'services'],
  ['', 'v1', 'namespaces'],
  ['', 'v1', 'nodes'],
  ['', 'v1', 'events'],
  ['', 'v1', 'persistentvolumeclaims'],
  ['', 'v1', 'serviceaccounts'],
  ['apps', 'v1', 'deployments'],
  ['apps', 'v1', 'statefulsets'],
  ['apps', 'v1', 'daemonsets'],
  ['apps', 'v1', 'replicasets'],
  ['batch', 'v1', 'jobs'],
  ['batch', 'v1', 'cronjobs'],
  ['networking.k8s.io', 'v1', 'ingresses'],
  ['apiextensions.k8s.io', 'v1', 'customresourcedefinitions'],
]);

/** Reads the gateway's configuration; whatever is missing or unreadable in it is replaced by its default. */
export async function loadConfig(fetchFunction = fetch) {
  try {
    const response = await fetchFunction('config.json', { headers: { Accept: 'application/json' } });
    return normalise(response.ok ? await response.json() : {});
  } catch {
    return normalise({});
  }
}

/** Fills the gaps of a configuration. */
export function normalise(given) {
  const scopes = Array.isArray(given?.scopes)
    ? given.scopes.filter((scope) => typeof scope?.query === 'string')
    : DEFAULTS.scopes;
  return {
    targets: strings(given?.targets) ?? DEFAULTS.targets,
    scopes: scopes.map((scope) => {
      const query = formatScope(parseScope(scope.query));
      return { label: typeof scope.label === 'string' && scope.label !== '' ? scope.label : query, query };
    }),
    projections: strings(given?.projections) ?? DEFAULTS.projections,
    streamPath: typeof given?.streamPath === 'string' ? given.streamPath : DEFAULTS.streamPath,
  };
}

function strings(value) {
  return Array.isArray(value) ? value.filter((entry) => typeof entry === 'string') : null;
}
