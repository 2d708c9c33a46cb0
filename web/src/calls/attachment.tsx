/** A file or picture of a message or a result. Its name is text, and its bytes are a download. */

import { blobAddress } from "../api/client";
import type { Attachment } from "../api/types";
import { texts } from "../texts";

export function AttachmentView({ sessionId, file }: { sessionId: string; file: Attachment }) {
  const address = blobAddress(sessionId, file.blob);
  const name = file.name || (file.type === "image" ? texts.file.image : texts.file.file);
  if (file.type === "image") {
    return (
      <a class="attachment-picture" href={address} target="_blank" rel="noopener noreferrer">
        <img src={address} alt={name} loading="lazy" decoding="async" />
      </a>
    );
  }
  return (
    <a class="attachment-file" href={address} download={file.name || true} aria-label={texts.file.download(name)}>
      <span dir="auto">{name}</span>
      <small>{file.media_type}</small>
    </a>
  );
}
