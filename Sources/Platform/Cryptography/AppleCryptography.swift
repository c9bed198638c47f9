// On Apple's systems this module is CryptoKit. Elsewhere it has the part of it that is used here, under the same names, over OpenSSL's
// libcrypto: the system keeps that up to date, and no app compiles a library of its own for it.
#if canImport(CryptoKit)
  @_exported public import CryptoKit
#endif
