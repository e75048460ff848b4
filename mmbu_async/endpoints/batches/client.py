"""Calls of batch APIs: hand a file in, look at a batch, find one whose answer was lost, fetch, cancel.

Neither vendor documents a key that makes a second submission the same as the first. So what may have been
accepted is looked for before anything is handed in again. OpenAI keeps our marker as metadata of the batch,
and shows the name of an uploaded file. Anthropic keeps nothing of ours but the custom ids, and tells those
with the results only: until then a batch of as many requests, made at the right time and known to nobody, may
be the one that is looked for.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from urllib.parse import quote

import orjson

from mmbu_async.config import CallSettings
from mmbu_async.endpoints.batches.anthropic import AnthropicBatch
from mmbu_async.endpoints.batches.calls import BatchCallError, Calls, Sighting, Wanted
from mmbu_async.endpoints.batches.format import RemoteBatch, Result, marker_of
from mmbu_async.endpoints.batches.openai import MARKER_KEY, OpenAIBatch
from mmbu_async.endpoints.batches.upload import Upload
from mmbu_async.endpoints.wire import WireFormat, table_of


class OpenAIBatches(Calls):
    """`/files` and `/batches`."""

    form = OpenAIBatch()

    async def submit(self, upload: Upload) -> RemoteBatch:
        boundary = upload.marker
        name = _file_name(upload.marker)
        before = (
            f'--{boundary}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'
            f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'
            "Content-Type: application/jsonl\r\n\r\n"
        ).encode()
        after = f"\r\n--{boundary}--\r\n".encode()
        headers = {
            "Content-Type": f"multipart/form-data; boundary={boundary}",
            "Content-Length": str(len(before) + upload.size + len(after)),
        }
        try:
            answer = await self.call("POST", "/files", data=upload.chunks(before, after), headers=headers)
        except BatchCallError as error:
            # A file alone is nothing: no request is made of it and nothing charged.
            raise BatchCallError(error.failure, sent=False) from error
        return await self.begin(str(answer.get("id") or ""), upload.marker)

    async def begin(self, file: str, marker: str) -> RemoteBatch:
        body = {
            "input_file_id": file,
            "endpoint": endpoint_of(self.settings, self.wire),
            "completion_window": "24h",
            "metadata": {MARKER_KEY: marker},
        }
        return self.remote_batch(await self.call("POST", "/batches", data=orjson.dumps(body)))

    async def look(self, batch: str) -> RemoteBatch:
        return self.remote_batch(await self.call("GET", f"/batches/{quote(batch, safe='')}"))

    async def find(self, wanted: Wanted) -> Sighting:
        async for batch in self.listed("/batches", "after", wanted.since):
            if batch.marker == wanted.marker:
                return Sighting(batch=batch)
        files = await self.call("GET", "/files", query="purpose=batch&order=desc&limit=1000")
        for file in map(table_of, files.get("data") or ()):
            if file.get("filename") == _file_name(wanted.marker) and file.get("bytes") == wanted.bytes:
                return Sighting(file=str(file.get("id") or ""))
        return Sighting()

    async def results(self, batch: RemoteBatch) -> AsyncIterator[Result]:
        for file in batch.results:
            async for result in self.lines(f"/files/{quote(file, safe='')}/content"):
                yield result

    async def cancel(self, batch: str) -> RemoteBatch:
        return self.remote_batch(await self.call("POST", f"/batches/{quote(batch, safe='')}/cancel"))


class AnthropicBatches(Calls):
    """`/v1/messages/batches`."""

    form = AnthropicBatch()
    _path = "/v1/messages/batches"

    async def submit(self, upload: Upload) -> RemoteBatch:
        headers = {"Content-Length": str(upload.size)}
        return self.remote_batch(await self.call("POST", self._path, data=upload.chunks(), headers=headers))

    async def begin(self, file: str, marker: str) -> RemoteBatch:
        raise NotImplementedError("Anthropic's batches have no file of their own")

    async def look(self, batch: str) -> RemoteBatch:
        return self.remote_batch(await self.call("GET", f"{self._path}/{quote(batch, safe='')}"))

    async def find(self, wanted: Wanted) -> Sighting:
        suspects = 0
        async for batch in self.listed(self._path, "after_id", wanted.since):
            if batch.id in wanted.known or batch.total != wanted.requests:
                continue
            if not batch.ended:
                suspects += 1
            elif await self._first_marker(batch) == wanted.marker:
                return Sighting(batch=batch)
        return Sighting(suspects=suspects)

    async def _first_marker(self, batch: RemoteBatch) -> str:
        """Of whose requests an ended batch is, by the first of its results."""
        results = self.results(batch)
        try:
            async for result in results:
                return marker_of(result.custom_id)
        finally:
            await results.aclose()  # type: ignore[attr-defined]
        return ""

    async def results(self, batch: RemoteBatch) -> AsyncIterator[Result]:
        async for result in self.lines(f"{self._path}/{quote(batch.id, safe='')}/results"):
            yield result

    async def cancel(self, batch: str) -> RemoteBatch:
        return self.remote_batch(await self.call("POST", f"{self._path}/{quote(batch, safe='')}/cancel"))


CLIENTS: Mapping[str, type[OpenAIBatches] | type[AnthropicBatches]] = {
    "openai": OpenAIBatches,
    "responses": OpenAIBatches,
    "anthropic": AnthropicBatches,
}
"""Wire formats that have a batch API here."""


def endpoint_of(settings: CallSettings, wire: WireFormat) -> str:
    """What each request of a batch is posted to, below the host, in OpenAI's words."""
    return "/v1" + wire.path(settings).partition("?")[0]


def _file_name(marker: str) -> str:
    return f"{marker}.jsonl"
