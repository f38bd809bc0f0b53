# Hardening.cmake - tenon_harden(TARGET...): flags that make a defect harder to use.
#
# Each flag is tried first: compilers, linkers and processors differ.  tests/structure/hardening reads the
# result back from the binaries.
include(CheckCCompilerFlag)
include(CheckCSourceCompiles)
include(CheckLinkerFlag)
include(CheckPIESupported)

# tenon_hardening_flags(COMPILE LINK) - sets the two variables to what this compiler and this linker have.
function(tenon_hardening_flags compile_variable link_variable)
    # Canaries; calls and jumps that land only where they may (x86: CET, ARM: BTI and PAC).
    set(compile)
    foreach(flag -fstack-protector-strong -fcf-protection=full -mbranch-protection=standard)
        string(MAKE_C_IDENTIFIER "TENON_HAS${flag}" has)
        check_c_compiler_flag(${flag} ${has})
        if(${has})
            list(APPEND compile ${flag})
        endif()
    endforeach()

    # Functions of the C library that know the size of the buffer; they need optimised code.
    set(CMAKE_REQUIRED_FLAGS "-O2 -Werror -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3")
    check_c_source_compiles("#include <string.h>\nint main(void) { return 0; }" TENON_HAS_FORTIFY_SOURCE_3)
    unset(CMAKE_REQUIRED_FLAGS)
    set(level 2)
    if(TENON_HAS_FORTIFY_SOURCE_3)
        set(level 3)
    endif()
    list(APPEND compile "$<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=${level}>")

    # What the loader fills is read-only afterwards; no stack is executable.  Debian's crti.o is not marked for CET,
    # and the linker marks nothing then.  It is ready for shadow stacks (shstk); it has no landing marks, so that
    # "-z ibt" would not be true.
    set(words relro now noexecstack)
    if(TENON_HAS_fcf_protection_full)
        list(APPEND words shstk)
    endif()
    set(link)
    foreach(word ${words})
        check_linker_flag(C "-Wl,-z,${word}" TENON_HAS_Z_${word})
        if(TENON_HAS_Z_${word})
            list(APPEND link "-Wl,-z,${word}")
        endif()
    endforeach()
    set(${compile_variable} "${compile}" PARENT_SCOPE)
    set(${link_variable} "${link}" PARENT_SCOPE)
endfunction()

function(tenon_harden)
    check_pie_supported(LANGUAGES C)        # for programs with POSITION_INDEPENDENT_CODE
    tenon_hardening_flags(compile link)
    foreach(target ${ARGN})
        target_compile_options(${target} PRIVATE ${compile})
        get_target_property(type ${target} TYPE)
        if(NOT type STREQUAL OBJECT_LIBRARY)
            target_link_options(${target} PRIVATE ${link})
        endif()
    endforeach()
endfunction()
