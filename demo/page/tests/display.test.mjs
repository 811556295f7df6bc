import assert from 'node:assert/strict';
import { test } from 'node:test';

import { duration } from '../age.js';
import { normalise } from '../config.js';
import { targetOptions } from '../picker.js';
import { lines, lineText, objectText } from '../rawjson.js';
import { Rate } from '../rate.js';
import { Rows } from '../rows.js';
import { formatScope, parseScope, scopeOfAddress } from '../scope.js';
import { conditions, summarise } from '../summary.js';

test('the object is cut out of an event byte for byte, whatever it holds', () => {
  const object = String.raw`{"a":{"object":1E5},"n":[12345678901234567890, 1.10, -0],"s":"}],\"object\":\\","u":"\ud800"}`;
  assert.equal(objectText(`{"seq":1,"type":"added","object":${object},"redacted":[{"path":"/x","rev":1}]}`), object);
  assert.equal(objectText(`{ "object" : ${object} , "type":"added"}`), object);
  assert.equal(objectText('{"seq":1,"type":"object"}'), null);
});

test('indentation keeps every token', () => {
  const object = String.raw`{"a":[1.0,{"b":[]},{}],"c":{"d":null,"e":"x: {,}\""},"f":-0e1}`;
  const text = lines(object).map(lineText).join('\n');
  assert.equal(text.split('\n')[2], '    1.0,');
  assert.equal(text.replaceAll(/\n *|(?<=":) /g, ''), object);
});

test('an object nested 5,000 deep is shown like any other', () => {
  const deep = `${'{"a":['.repeat(2500)}1${']}'.repeat(2500)}`;
  const event = `{"seq":1,"object":${deep}}`;
  assert.equal(objectText(event), deep);
  assert.equal(lines(deep).length, 10_001);
});

test('ages are spelled as kubectl spells them', () => {
  const second = 1000;
  const hour = 3600 * second;
  const cases = [[-5, '0s'], [119 * second, '119s'], [120 * second, '2m'], [200 * second, '3m20s'], [700 * second, '11m'],
    [3.5 * hour, '3h30m'], [9 * hour, '9h'], [49 * hour, '2d1h'], [800 * 24 * hour, '2y70d'], [Number.NaN, '']];
  for (const [milliseconds, expected] of cases) {
    assert.equal(duration(milliseconds), expected);
  }
});

test('a scope survives the address and is canonical in it', () => {
  const query = 'target=west&group=apps&version=v1&resource=deployments&namespace=a&labelSelector=x%20in%20(a%2Cb)%2Cy%3D1&projection=krm-spec%2Fv1';
  assert.equal(formatScope(parseScope(`#${query}`)), query);
  assert.equal(formatScope(parseScope('?resource=pods&namespace=&version=v1&token=x')), 'version=v1&resource=pods');
  assert.deepEqual(scopeOfAddress({ hash: '', search: '?version=v1&resource=pods' }), { version: 'v1', resource: 'pods' });
  assert.deepEqual(scopeOfAddress({ hash: '#version=v1&resource=nodes', search: '?resource=pods' }), { version: 'v1', resource: 'nodes' });
});

test('a configuration that is missing or of another shape is replaced by defaults', () => {
  for (const given of [undefined, null, [], 7, { targets: 'x', scopes: 1, projections: null, streamPath: {} }]) {
    const config = normalise(given);
    assert.ok(config.scopes.length > 0);
    assert.equal(config.streamPath, '/resource-stream/v1');
  }
  assert.deepEqual(normalise({ scopes: [{ query: '?resource=pods&version=v1' }, 3] }).scopes,
    [{ label: 'version=v1&resource=pods', query: 'version=v1&resource=pods' }]);
});

test('a summary suits the kind', () => {
  const text = (object, redacted = []) => summarise({ metadata: {}, ...object }, redacted).text;
  const withheld = [{ path: '/data/a', rev: 1 }, { path: '/metadata/annotations/x', rev: 1 }];
  assert.equal(text({ kind: 'Deployment', spec: { replicas: 3 }, status: { readyReplicas: 2, updatedReplicas: 3 } }), '2/3 ready');
  assert.equal(text({ kind: 'Deployment', spec: { replicas: 3 } }), '3 desired');
  assert.equal(text({ kind: 'ConfigMap', data: { a: '' }, binaryData: { b: '' } }), '2 keys');
  assert.equal(text({ kind: 'Secret' }, withheld), '1 key, withheld');
  assert.equal(text({ kind: 'Namespace', status: { phase: 'Active' } }), 'Active');
  assert.equal(text({ kind: 'Job', spec: { completions: 2 }, status: { succeeded: 1, failed: 1 } }), '1/2 succeeded · 1 failed');
  assert.equal(text({ kind: 'Node', status: { conditions: [{ type: 'Ready', status: 'True' }], nodeInfo: { kubeletVersion: 'v1.36.3' } } }), 'Ready · v1.36.3');
  assert.equal(text({ kind: 'Pod', status: { phase: 'Running', containerStatuses: [{ ready: false, restartCount: 4, state: { waiting: { reason: 'CrashLoopBackOff' } } }] } }),
    'CrashLoopBackOff · 0/1 ready · 4 restarts');
  assert.equal(text({ kind: 'Widget', spec: { a: 1 }, status: { conditions: [{ type: 'Ready', status: 'False', reason: 'Waiting' }] } }), 'Not ready: Waiting');
  assert.equal(text({ kind: 'Widget', spec: { a: 1, b: 2 } }), '2 spec fields');
  assert.equal(text({ kind: 'Pod', metadata: { deletionTimestamp: 'x' } }), 'Being deleted');
});

test('no shape of an object makes a summary fail', () => {
  const odd = [null, 0, '', 'x', [], [null], {}, { conditions: [null, 1, { type: 2 }] }, { conditions: 'x' }, { phase: 'constructor' }];
  const kinds = ['ConfigMap', 'Secret', 'Namespace', 'Pod', 'Deployment', 'DaemonSet', 'Node', 'Job', 'CronJob', 'Service', 'Ingress',
    'Event', 'PersistentVolumeClaim', 'RoleBinding', 'Lease', 'Widget', 'constructor', '__proto__', 7];
  for (const kind of kinds) {
    for (const value of odd) {
      const object = { kind, metadata: value, spec: value, status: value, data: value, rules: value, subjects: value, roleRef: value, series: value };
      assert.equal(typeof summarise(object, []).text, 'string');
      assert.ok(Array.isArray(conditions(object)));
    }
  }
});

const upsert = (uid, name, extra = {}) => ({
  key: uid, existed: false, changed: true, redacted: [], text: '', object: { kind: 'ConfigMap', metadata: { uid, name, ...extra } },
});

test('rows keep their order, filter and count, those that fade included', () => {
  const rows = new Rows();
  const context = { now: 0, news: true };
  ['b', 'c', 'a'].forEach((name) => rows.upsert(upsert(name, name), context));
  const names = () => {
    rows.order();
    return rows.visible.map(({ name }) => name);
  };
  assert.deepEqual(names(), ['a', 'b', 'c']);
  rows.sortBy('name');
  assert.deepEqual(names(), ['c', 'b', 'a']);
  rows.leave('b');
  assert.equal(rows.size, 2);
  assert.deepEqual(names(), ['c', 'b', 'a']);
  rows.upsert(upsert('b', 'b'), context);
  assert.equal(rows.size, 3);
  rows.drop('b');
  rows.filterBy('C');
  assert.deepEqual(names(), ['c']);
  rows.upsert(upsert('a', 'abc'), context);
  assert.equal(rows.orderIsOld, true);
  assert.deepEqual(names(), ['c', 'abc']);
});

test('a change that moves nothing leaves the order alone', () => {
  const rows = new Rows();
  rows.upsert(upsert('a', 'a'), { now: 0, news: false });
  rows.order();
  rows.upsert(upsert('a', 'a'), { now: 1, news: true });
  assert.equal(rows.orderIsOld, false);
  assert.equal(rows.get('a').changes, 1);
});

test('sorted by change, what changes last comes first', () => {
  const rows = new Rows();
  ['a', 'b'].forEach((name, now) => rows.upsert(upsert(name, name), { now, news: true }));
  rows.sortBy('changed');
  rows.order();
  assert.deepEqual(rows.visible.map(({ name }) => name), ['b', 'a']);
  rows.upsert(upsert('a', 'a'), { now: 2, news: true });
  assert.equal(rows.orderIsOld, true);
  rows.order();
  assert.deepEqual(rows.visible.map(({ name }) => name), ['a', 'b']);
});

test('the rate is that of the last whole seconds', () => {
  const rate = new Rate();
  for (let now = 0; now < 10_000; now += 100) {
    rate.count(now);
  }
  assert.equal(rate.perSecond(10_050), 10);
  assert.equal(rate.perSecond(60_000), 0);
});

test('the targets that are served can be chosen, and no other', () => {
  assert.deepEqual(targetOptions(['left', 'right']), [['left', 'left'], ['right', 'right']]);
  assert.deepEqual(targetOptions(['', 'staging']), [['', 'default'], ['staging', 'staging']]);
  assert.deepEqual(targetOptions(['one']), [['one', 'one']]);
  assert.deepEqual(targetOptions(normalise({}).targets), [['', 'default']]);
});
