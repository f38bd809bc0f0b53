/* tests/faults/mark.h - closing this descriptor, which nobody has, is the sign to begin counting. */
#ifndef TENON_FAULTS_MARK_H
#define TENON_FAULTS_MARK_H

#define FAULTS_MARK (-32320)

#endif
