/** All commands and keys, for whoever asks. */

import { Button } from "../parts/button";
import { Dialog } from "../parts/dialog";
import { texts } from "../texts";
import { helpShown } from "./carrying";
import { SLASHES } from "./reading";

export function Help() {
  if (!helpShown.value) return null;
  const close = (): void => {
    helpShown.value = false;
  };
  const commands = SLASHES.map(({ name, takes }) => [
    `/${name}${takes === "nothing" ? "" : ` ${texts.commands.takes[name] ?? ""}`}`,
    texts.commands.about[name],
  ]);
  return (
    <Dialog title={texts.help.title} onClose={close} kind="help">
      <h2>{texts.help.title}</h2>
      <dl>
        {[...commands, ...texts.help.prefixes].map(([name, about]) => (
          <div key={name}>
            <dt>
              <code>{name}</code>
            </dt>
            <dd>{about}</dd>
          </div>
        ))}
      </dl>
      <h3>{texts.help.keys}</h3>
      <dl>
        {texts.help.keyList.map(([key, about]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{about}</dd>
          </div>
        ))}
      </dl>
      <div class="btns">
        <Button onClick={close}>{texts.close}</Button>
      </div>
    </Dialog>
  );
}
