// Events per second, from counts of whole seconds.

const SECONDS_KEPT = 60;
const SECONDS_AVERAGED = 3;

/** Counts events; reads no clock itself. */
export class Rate {
  /** @type {Map<number, number>} */
  #counts = new Map();

  /** @param {number} now milliseconds */
  count(now) {
    const second = Math.floor(now / 1000);
    this.#counts.set(second, (this.#counts.get(second) ?? 0) + 1);
  }

  clear() {
    this.#counts.clear();
  }

  /** The counts of the last whole seconds, oldest first. */
  history(now) {
    const current = Math.floor(now / 1000);
    for (const second of this.#counts.keys()) {
      if (second < current - SECONDS_KEPT) {
        this.#counts.delete(second);
      }
    }
    return Array.from({ length: SECONDS_KEPT }, (_, index) => this.#counts.get(current - SECONDS_KEPT + index) ?? 0);
  }

  /** Events per second over the last few whole seconds. */
  perSecond(now) {
    const recent = this.history(now).slice(-SECONDS_AVERAGED);
    return recent.reduce((sum, count) => sum + count, 0) / SECONDS_AVERAGED;
  }
}
