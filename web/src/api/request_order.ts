/** What a person changed before they spoke holds for what they say: requests overtake each other, words must not. */

const underway = new Map<string, Promise<unknown>>();

/** Changes of one session are made in their order, whether or not the one before was possible. */
export function inOrder<T>(id: string, change: () => Promise<T>): Promise<T> {
  const request = (underway.get(id)?.catch(() => undefined) ?? Promise.resolve()).then(change);
  underway.set(id, request);
  const forget = (): void => {
    if (underway.get(id) === request) underway.delete(id);
  };
  request.then(forget, forget);
  return request;
}

/** Done when nothing is being changed; not at all if that failed, since it is not what the person wanted. */
export async function afterChanges<T>(id: string, act: () => Promise<T>): Promise<T> {
  await underway.get(id);
  return act();
}
