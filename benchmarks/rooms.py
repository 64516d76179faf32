"""Panoramas of procedural rooms a second, by number of workers."""

import time

from torch.utils.data import DataLoader

from spherule.data import Panorama
from spherule.data.rooms import Rooms, RoomsConfig
from timing import keep, machine

SIZE, COUNT = "128x256", 60


def same(item: Panorama) -> Panorama:
    return item


def main() -> None:
    print(f"{machine()}, rooms of {SIZE}")
    for workers in (0, 1, 2):
        rooms = Rooms(RoomsConfig(size=SIZE), samples=COUNT)
        loader = DataLoader(rooms, batch_size=None, num_workers=workers, collate_fn=same)
        items = iter(loader)
        next(items)  # workers have started, tables are made
        start, cpu = time.perf_counter(), time.process_time()
        made = sum(1 for _ in items)
        rate = made / (time.perf_counter() - start)
        own = f", {1e3 * (time.process_time() - cpu) / made:.0f} ms of CPU each" * (workers == 0)
        keep("rooms", f"{workers} workers: panoramas/s", rate, rate, rate)
        print(f"{workers} workers: {rate:5.1f} panoramas/s{own}")


if __name__ == "__main__":
    main()
