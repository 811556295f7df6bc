// What state an object is in, in a few words, by its kind. Objects come from elsewhere: any field may have any type.

/**
 * @typedef {'good' | 'busy' | 'bad' | 'plain'} Tone
 * @typedef {{ text: string, tone: Tone }} Summary
 * @typedef {{ type: string, status: string, reason: string, message: string, since: string, tone: Tone }} Condition
 */

const summary = (text, tone = 'plain') => ({ text, tone });

/**
 * @param {object} object
 * @param {{ path: string }[]} redacted
 * @returns {Summary}
 */
export function summarise(object, redacted) {
  if (map(object.metadata).deletionTimestamp) {
    return summary('Being deleted', 'busy');
  }
  const byKind = SUMMARIES[word(object.kind)];
  return byKind ? byKind(object, redacted) : ofConditions(object);
}

/** The conditions of an object, in its own order. */
export function conditions(object) {
  return list(map(object.status).conditions).map(map).filter((entry) => word(entry.type) !== '').map((entry) => {
    const type = word(entry.type);
    const status = word(entry.status);
    return {
      type,
      status,
      reason: word(entry.reason),
      message: word(entry.message),
      since: word(entry.lastTransitionTime),
      tone: conditionTone(type, status),
    };
  });
}

// Conditions whose truth is trouble, or merely a note; of all others truth is the good state.
const TROUBLE = /(Pressure|Unavailable|Failed|Failure|Degraded|Stalled|Dangling|Error|Violated)$/;
const NOTE = /^(Progressing|Reconciling|Suspended|Unstructured|DisruptionTarget|NonStructuralSchema)$/;

function conditionTone(type, status) {
  if (status === 'Unknown') {
    return 'busy';
  }
  if (NOTE.test(type)) {
    return 'plain';
  }
  const good = TROUBLE.test(type) ? status === 'False' : status === 'True';
  return good ? 'good' : 'bad';
}

const SUMMARIES = Object.freeze({
  __proto__: null,
  ConfigMap: (object) => summary(counted(keys(object.data) + keys(object.binaryData), 'key')),
  Secret: ofSecret,
  Namespace: (object) => ofPhase(object, { Active: 'good', Terminating: 'busy' }),
  Pod: ofPod,
  Deployment: (object) => ofReplicas(object),
  StatefulSet: (object) => ofReplicas(object),
  ReplicaSet: (object) => ofReplicas(object),
  ReplicationController: (object) => ofReplicas(object),
  DaemonSet: (object) => {
    const status = map(object.status);
    return ready(number(status.numberReady) ?? 0, number(status.desiredNumberScheduled));
  },
  Node: ofNode,
  Job: ofJob,
  CronJob: ofCronJob,
  Service: ofService,
  Ingress: (object) => {
    const hosts = list(map(object.spec).rules).map((rule) => word(map(rule).host)).filter(Boolean);
    return summary(hosts.length > 0 ? hosts.join(', ') : counted(list(map(object.spec).rules).length, 'rule'));
  },
  Event: ofEvent,
  PersistentVolumeClaim: (object) => ofPhase(object, { Bound: 'good', Pending: 'busy', Lost: 'bad' }),
  PersistentVolume: (object) => ofPhase(object, { Bound: 'good', Available: 'good', Released: 'busy', Failed: 'bad' }),
  ServiceAccount: (object) => summary(counted(list(object.secrets).length, 'secret')),
  Role: (object) => summary(counted(list(object.rules).length, 'rule')),
  ClusterRole: (object) => summary(counted(list(object.rules).length, 'rule')),
  RoleBinding: (object) => summary(`${word(map(object.roleRef).name)} for ${counted(list(object.subjects).length, 'subject')}`),
  ClusterRoleBinding: (object) => summary(`${word(map(object.roleRef).name)} for ${counted(list(object.subjects).length, 'subject')}`),
  EndpointSlice: (object) => summary(counted(list(object.endpoints).length, 'endpoint')),
  Lease: (object) => summary(`held by ${word(map(object.spec).holderIdentity) || 'nobody'}`),
});

function ofSecret(object, redacted) {
  const withheld = redacted.filter(({ path }) => /^\/(data|stringData|binaryData)(\/|$)/.test(path)).length;
  const shown = keys(object.data) + keys(object.stringData);
  if (withheld === 0) {
    return summary(counted(shown, 'key'));
  }
  return summary(`${counted(shown + withheld, 'key')}, ${shown === 0 ? 'withheld' : `${withheld} withheld`}`);
}

function ofPhase(object, tones) {
  const phase = word(map(object.status).phase);
  return phase === '' ? summary('No phase yet') : summary(phase, Object.hasOwn(tones, phase) ? tones[phase] : 'plain');
}

const POD_TONES = Object.freeze({ Running: 'good', Succeeded: 'good', Pending: 'busy', Failed: 'bad', Unknown: 'bad' });

function ofPod(object) {
  const status = map(object.status);
  const containers = list(status.containerStatuses).map(map);
  const restarts = containers.reduce((sum, container) => sum + (number(container.restartCount) ?? 0), 0);
  const readyCount = containers.filter((container) => container.ready === true).length;
  const waiting = containers
    .map((container) => word(map(map(container.state).waiting).reason))
    .find((reason) => reason !== '' && reason !== 'ContainerCreating' && reason !== 'PodInitializing');
  const phase = word(status.phase);

  let tone = Object.hasOwn(POD_TONES, phase) ? POD_TONES[phase] : 'plain';
  if (waiting) {
    tone = 'bad';
  } else if (phase === 'Running' && readyCount < containers.length) {
    tone = 'busy';
  }
  const parts = [waiting || word(status.reason) || phase || 'No phase yet'];
  if (containers.length > 0 && phase !== 'Succeeded') {
    parts.push(`${readyCount}/${containers.length} ready`);
  }
  if (restarts > 0) {
    parts.push(counted(restarts, 'restart'));
  }
  return summary(parts.join(' · '), tone);
}

function ofReplicas(object) {
  const spec = map(object.spec);
  const status = map(object.status);
  const desired = number(spec.replicas) ?? 1;
  if (object.status === undefined) {
    return summary(`${desired} desired`);
  }
  const result = ready(number(status.readyReplicas) ?? 0, desired);
  const updated = number(status.updatedReplicas);
  if (spec.paused === true) {
    return summary(`${result.text} · paused`, result.tone);
  }
  return updated !== undefined && updated < desired ? summary(`${result.text} · ${updated} updated`, 'busy') : result;
}

function ready(count, desired) {
  if (desired === undefined) {
    return summary('Not scheduled yet', 'busy');
  }
  let tone = 'busy';
  if (count === desired) {
    tone = desired === 0 ? 'plain' : 'good';
  } else if (count === 0) {
    tone = 'bad';
  }
  return summary(`${count}/${desired} ready`, tone);
}

function ofNode(object) {
  const condition = conditions(object).find(({ type }) => type === 'Ready');
  const version = word(map(map(object.status).nodeInfo).kubeletVersion);
  const parts = [condition?.status === 'True' ? 'Ready' : 'Not ready'];
  if (map(object.spec).unschedulable === true) {
    parts.push('scheduling disabled');
  }
  if (version !== '') {
    parts.push(version);
  }
  return summary(parts.join(' · '), condition?.status === 'True' ? 'good' : 'bad');
}

function ofJob(object) {
  const status = map(object.status);
  const wanted = number(map(object.spec).completions) ?? 1;
  const succeeded = number(status.succeeded) ?? 0;
  const failed = number(status.failed) ?? 0;
  const done = conditions(object).find(({ type, status: truth }) => truth === 'True' && (type === 'Complete' || type === 'Failed'));
  const parts = [`${succeeded}/${wanted} succeeded`];
  if (failed > 0) {
    parts.push(`${failed} failed`);
  }
  if (done?.type === 'Failed') {
    return summary(`Failed · ${parts.join(' · ')}`, 'bad');
  }
  return summary(parts.join(' · '), done || succeeded >= wanted ? 'good' : 'busy');
}

function ofCronJob(object) {
  const spec = map(object.spec);
  const active = list(map(object.status).active).length;
  const parts = [word(spec.schedule)];
  if (spec.suspend === true) {
    parts.push('suspended');
  }
  if (active > 0) {
    parts.push(`${active} active`);
  }
  return summary(parts.join(' · '), active > 0 ? 'good' : 'plain');
}

function ofService(object) {
  const spec = map(object.spec);
  const ports = list(spec.ports).map((port) => `${printable(map(port).port)}/${word(map(port).protocol) || 'TCP'}`);
  return summary([word(spec.type) || 'ClusterIP', word(spec.clusterIP), ports.join(' ')].filter(Boolean).join(' · '));
}

function ofEvent(object) {
  const count = number(object.count) ?? number(map(object.series).count) ?? 1;
  const reason = word(object.reason);
  const times = count > 1 ? ` ×${count}` : '';
  const note = word(object.message) || word(object.note);
  return summary(`${reason}${times}${note ? `: ${note}` : ''}`, object.type === 'Warning' ? 'bad' : 'plain');
}

/** The convention of custom resources: a condition that says it all, else a phase, else what there is of a spec. */
function ofConditions(object) {
  const known = conditions(object);
  for (const [type, good, otherwise] of [
    ['Ready', 'Ready', 'Not ready'],
    ['Available', 'Available', 'Not available'],
    ['Established', 'Established', 'Not established'],
    ['Synced', 'Synced', 'Not synced'],
  ]) {
    const condition = known.find((entry) => entry.type === type);
    if (condition?.status === 'True') {
      return summary(good, 'good');
    }
    if (condition) {
      const reason = condition.reason ? `: ${condition.reason}` : '';
      return summary(`${otherwise}${reason}`, condition.status === 'Unknown' ? 'busy' : 'bad');
    }
  }
  for (const field of ['phase', 'state', 'health']) {
    const text = word(map(object.status)[field]);
    if (text !== '') {
      return summary(text);
    }
  }
  return object.spec === undefined ? summary('No spec') : summary(counted(keys(object.spec), 'spec field'));
}

function map(value) {
  return value !== null && typeof value === 'object' && !Array.isArray(value) ? value : {};
}

function list(value) {
  return Array.isArray(value) ? value : [];
}

function keys(value) {
  return Object.keys(map(value)).length;
}

function number(value) {
  return typeof value === 'number' ? value : undefined;
}

function word(value) {
  return typeof value === 'string' ? value : '';
}

function printable(value) {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '?';
}

function counted(count, noun) {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
