// The scope picker: links to what the gateway offers, and a form for anything else.

import { KNOWN_KINDS } from './config.js';
import { FIELDS, formatScope } from './scope.js';

const byId = (id) => document.getElementById(id);
const input = (field) => byId(`scope-${field}`);

export class Picker {
  #config;

  /**
   * @param {ReturnType<typeof import('./config.js').normalise>} config
   * @param {(query: string) => void} onWatch
   */
  constructor(config, onWatch) {
    this.#config = config;
    this.#fillPresets();
    fill(input('target'), targetOptions(config.targets));
    this.#fillKinds();
    fill(input('projection'), [['', 'the gateway’s default'], ...config.projections.map((name) => [name, name])]);
    byId('scope-form').addEventListener('submit', (event) => {
      event.preventDefault();
      onWatch(formatScope(this.#read()));
    });
  }

  /** Shows a scope in the form and which of the links it is. */
  show(scope) {
    for (const field of FIELDS) {
      const control = input(field);
      const value = scope[field] ?? this.#absent(field);
      // A link may name a target or a projection that this gateway does not list: it is asked for all the same.
      if (control instanceof HTMLSelectElement && ![...control.options].some((option) => option.value === value)) {
        control.append(new Option(value, value));
      }
      control.value = value;
    }
    byId('kind-preset').value = kindValue(scope.group ?? '', scope.version ?? '', scope.resource ?? '');
    if (byId('kind-preset').selectedIndex < 0) {
      byId('kind-preset').value = '';
    }
    byId('target-field').hidden = input('target').options.length <= 1;
    const query = formatScope(scope);
    for (const link of byId('presets').querySelectorAll('a')) {
      if (link.dataset.query === query) {
        link.setAttribute('aria-current', 'page');
      } else {
        link.removeAttribute('aria-current');
      }
    }
  }

  /** What the form holds for a field that a scope does not have. */
  #absent(field) {
    const [first, ...others] = targetOptions(this.#config.targets).map(([value]) => value);
    return field === 'target' && !others.includes('') ? first : '';
  }

  #read() {
    return Object.fromEntries(FIELDS.map((field) => [field, input(field).value.trim()]));
  }

  #fillPresets() {
    byId('presets').replaceChildren(...this.#config.scopes.map(({ label, query }) => {
      const item = document.createElement('li');
      const link = document.createElement('a');
      link.href = `#${query}`;
      link.dataset.query = query;
      link.textContent = label;
      item.append(link);
      return item;
    }));
  }

  #fillKinds() {
    const kinds = KNOWN_KINDS.map(([group, version, resource]) => [
      kindValue(group, version, resource),
      `${resource} (${group === '' ? version : `${group}/${version}`})`,
    ]);
    fill(byId('kind-preset'), [['', 'choose, or type below'], ...kinds]);
    byId('kind-preset').addEventListener('change', (event) => {
      if (event.target.value !== '') {
        const [group, version, resource] = event.target.value.split(' ');
        input('group').value = group;
        input('version').value = version;
        input('resource').value = resource;
      }
    });
  }
}

/**
 * The targets to choose from, as values and labels: those that the gateway serves, and no other. One that does not say
 * serves the default target.
 *
 * @param {string[]} targets
 */
export function targetOptions(targets) {
  const served = targets.length === 0 ? [''] : targets;
  return served.map((name) => [name, name || 'default']);
}

function kindValue(group, version, resource) {
  return `${group} ${version} ${resource}`;
}

function fill(select, options) {
  select.replaceChildren(...options.map(([value, label]) => new Option(label, value)));
}
