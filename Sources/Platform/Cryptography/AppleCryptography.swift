// CryptoKit on Apple's systems; elsewhere the same names over the system's OpenSSL, which the system keeps up to date.
#if canImport(CryptoKit)
  @_exported public import CryptoKit
#endif
