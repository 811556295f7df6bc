// node --test demo/page/tests/*.test.mjs

import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

import { Consumer } from '../reducer.js';

const SHARED = process.env.KRM_SHARED ?? join(import.meta.dirname, '../../../../shared');
const CONFORMANCE = join(SHARED, 'conformance');

function uids(consumer) {
  return [...consumer.keys()].map((key) => key.split('\u0000')[1]).sort();
}

/** A connection of a consumer, to which events are given without their `seq`. */
function connected(consumer = new Consumer()) {
  consumer.connect();
  let seq = 0;
  return { consumer, give: (event) => consumer.receive(JSON.stringify({ seq: (seq += 1), ...event })) };
}

const RESET = { type: 'reset', scope: { target: '', version: 'v1', resource: 'configmaps' }, projection: 'krm-full/v1' };
const SYNCED = { type: 'synced' };
const added = (uid, extra = {}) => ({ type: 'added', object: { metadata: { uid }, ...extra }, redacted: [] });

test('each conformance scenario with a consumer ends with its uids', { skip: !existsSync(CONFORMANCE) }, () => {
  const read = (name) => JSON.parse(readFileSync(join(CONFORMANCE, name), 'utf8'));
  const bodies = read('bodies.json');
  let checked = 0;
  for (const scenario of read('scenarios.json')) {
    if (scenario.consumer === undefined) {
      continue;
    }
    const wire = join(CONFORMANCE, 'wire', `${scenario.id}.sse`);
    const consumer = new Consumer();
    if (existsSync(wire)) {
      for (const line of readFileSync(wire, 'utf8').split('\n')) {
        if (line.startsWith(': connection')) {
          consumer.connect();
        } else if (line.startsWith('data: ')) {
          consumer.receive(line.slice('data: '.length));
        }
      }
    } else {
      const { give } = connected(consumer);
      for (const { body, ...event } of scenario.events) {
        const named = bodies[body]?.object ?? bodies[body];
        give(body === undefined ? event : { ...event, object: named, redacted: [] });
      }
    }
    assert.deepEqual(uids(consumer), [...scenario.consumer.uids].sort(), scenario.id);
    checked += 1;
  }
  assert.ok(checked >= 6, `only ${checked} scenarios were found`);
});

test('a cycle that did not reach synced prunes nothing, the next that does prunes what it did not send', () => {
  const { consumer, give } = connected();
  [RESET, added('a'), added('b'), SYNCED].forEach(give);
  [{ type: 'error', code: 'RESYNC_REQUIRED', message: '', terminal: false }, RESET, added('a')].forEach(give);
  assert.deepEqual(uids(consumer), ['a', 'b']);
  const again = connected(consumer);
  [RESET, added('a')].forEach(again.give);
  assert.deepEqual(uids(consumer), ['a', 'b']);
  assert.deepEqual(again.give(SYNCED).changes.map(({ type }) => type), ['remove', 'synced']);
  assert.deepEqual(uids(consumer), ['a']);
});

test('a deleted object goes, and the same uid of another target stays', () => {
  const { consumer, give } = connected();
  [{ ...RESET, target: 'west' }, added('a'), SYNCED, RESET, added('a'), added('b')].forEach(give);
  assert.equal(consumer.size, 3);
  give({ type: 'deleted', identity: { uid: 'a', apiVersion: 'v1', kind: 'ConfigMap', name: 'a' } });
  assert.deepEqual([...consumer.keys()], ['west\u0000a', '\u0000b']);
});

test('a gap in seq asks for another connection and takes nothing more in', () => {
  const { consumer } = connected();
  consumer.receive(JSON.stringify({ seq: 1, ...RESET }));
  const { changes, decision } = consumer.receive(JSON.stringify({ seq: 3, ...added('a') }));
  assert.equal(changes[0].type, 'fault');
  assert.deepEqual(decision, { do: 'reopen', afterMs: null });
  consumer.receive(JSON.stringify({ seq: 2, ...added('b') }));
  assert.equal(consumer.size, 0);
});

test('seq begins at 1 on every connection', () => {
  const { consumer, give } = connected();
  [RESET, added('a'), SYNCED].forEach(give);
  consumer.connect();
  assert.deepEqual(consumer.receive(JSON.stringify({ seq: 1, ...RESET })).decision, { do: 'continue' });
});

test('errors decide: terminal ends, resync goes on, all else comes back after the hint', () => {
  const decide = (error) => connected().give({ type: 'error', message: 'm', ...error }).decision;
  assert.deepEqual(decide({ code: 'FORBIDDEN', terminal: true }), { do: 'end' });
  assert.deepEqual(decide({ code: 'INTERNAL', terminal: true, retryAfterMs: 5 }), { do: 'end' });
  assert.deepEqual(decide({ code: 'RESYNC_REQUIRED', terminal: false }), { do: 'continue' });
  assert.deepEqual(decide({ code: 'UPSTREAM_UNAVAILABLE', terminal: false, retryAfterMs: 1500 }), { do: 'reopen', afterMs: 1500 });
  assert.deepEqual(decide({ code: 'UPSTREAM_UNAVAILABLE', terminal: false }), { do: 'reopen', afterMs: null });
  assert.deepEqual(decide({ code: 'NEW_CODE', terminal: false, retryAfterMs: -1 }), { do: 'reopen', afterMs: null });
});

test('unknown types and fields are ignored, but counted', () => {
  const { consumer, give } = connected();
  [RESET, { type: 'novelty', object: {} }, { ...added('a'), novelty: 1 }, SYNCED].forEach(give);
  assert.deepEqual(uids(consumer), ['a']);
});

test('what cannot be read is a fault and never an exception', () => {
  for (const text of ['', '{', 'null', '7', '[]', '{"seq":"1"}', '{"seq":1,"type":"added","object":{}}']) {
    const { consumer } = connected();
    assert.equal(consumer.receive(text).decision.do, 'reopen', text);
  }
});

test('an object that a new cycle repeats unchanged is not news, a changed or rotated one is', () => {
  const { consumer, give } = connected();
  const secret = (rev) => ({ ...added('a'), redacted: [{ path: '/data/p', rev }] });
  const changed = (outcome) => outcome.changes[0].changed;
  give(RESET);
  assert.equal(changed(give(secret(2))), true);
  assert.equal(changed(give(secret(2))), false);
  assert.equal(changed(give(secret(3))), true);
  const again = connected(consumer);
  again.give(RESET);
  assert.equal(changed(again.give(secret(1))), false);
  assert.equal(changed(again.give({ ...added('a', { spec: 1 }), redacted: [] })), true);
});
