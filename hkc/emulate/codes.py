"""Every code of the emulator, with one sentence for `hkc explain`."""

from __future__ import annotations

CODES: dict[str, str] = {
    "HK701": "Every instruction that a kernel reaches has a known meaning; the emulator never guesses.",
    "HK702": "This form of the instruction is one that the emulator has not learned.",
    "HK703": "A kernel uses instructions that its chip has.",
    "HK704": "An access to memory lies inside an allocation; scratch accesses lie inside the lane's own bytes.",
    "HK705": "Memory is read and written from outside within one allocation.",
    "HK706": "The emulator runs code objects for chips of which it has tables.",
    "HK707": "A code object refers to symbols of its own; a loader has nothing else to fill in.",
    "HK708": "A jump leads to the start of an instruction.",
    "HK709": "A kernel ends; after very many steps it counts as an endless loop.",
    "HK710": "All waves of a workgroup that have not ended arrive at a barrier.",
    "HK711": "A launch asks for no more threads and LDS than kernel and chip allow, and for modes that they have.",
    "HK712": "A launch gives the arguments that the kernel's metadata lists, each of the size listed there.",
    "HK713": "A code object's file can be read.",
    "HK714": "A kernel's arguments are buffers, numbers and structs; images, queues and the like can't be made.",
    "HK715": "What a kernel's registers, LDS and scratch take fits into this machine's address space.",
    "HK716": "A kernel uses only vector registers that its descriptor asks for.",
    "HK717": "A program that gives up traps: an assertion fails, or control gets where no path should lead.",
    "HK721": "A register is used only after the load into it has been waited for.",
    "HK722": "What is stored, addressed or decided on comes from registers, LDS and memory that were written before.",
    "HK723": "Waves that use the same LDS bytes have a barrier between them, and have waited before it.",
    "HK724": "Workgroups that use the same memory are ordered by atomics, write-backs and invalidations.",
    "HK725": "All waves of a workgroup arrive at barriers equally often, and with all their lanes.",
    "HK726": "Accesses stay inside the arguments and between no elements of a view, and LDS accesses inside the LDS.",
    "HK727": "The address of an atomic is a multiple of its size; the hardware refuses others.",
    "HK728": "Enough instructions stand between a matrix instruction and what uses its registers.",
    "HK729": "The program is executed to its end.",
    "HK730": "An address is a multiple of the access's size; otherwise the hardware splits the access.",
    "HK731": "An LDS instruction takes no more clocks than its kind must.",
}
