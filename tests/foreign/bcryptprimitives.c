// The generator of random bytes that Wine 8 lacks, by one that it has: for tests, and never handed out.
#include <windows.h>

BOOLEAN NTAPI SystemFunction036(PVOID to, ULONG length);

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE to, SIZE_T length) {
    return SystemFunction036(to, (ULONG)length);
}
