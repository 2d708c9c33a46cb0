/** The notice on the stage, unless the list or the inspector lies over it: then it stands in that. */

import { shown, wide } from "../inspector/selection";
import { listShown } from "../navigation/panels";
import { current } from "../session/current_session";
import { Notice } from "../ui/notice";

export function StageNotice() {
  const isInspectorOver = !wide.value && shown.value && (current.value?.store.value ?? null) !== null;
  return <Notice isHere={!listShown.value && !isInspectorOver} />;
}
