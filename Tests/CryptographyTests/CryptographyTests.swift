import Platform
import TestSupport
import Testing

/// What standards publish, and what a second implementation of them says.
@Suite struct CryptographyTests {
  private static func bytes(_ hexadecimal: String) -> [UInt8] {
    stride(from: 0, to: hexadecimal.count, by: 2).compactMap { place in
      UInt8(hexadecimal.dropFirst(place).prefix(2), radix: 16)
    }
  }

  /// A key seen through the code that it gives.
  private static func sight(of key: SymmetricKey) -> [UInt8] {
    Array(HMAC<SHA256>.authenticationCode(for: Array("sight".utf8), using: key))
  }

  @Test func digestsAreThoseOfTheStandards() {
    let abc = Array("abc".utf8)
    // FIPS 180-4, and RFC 1321, A.5.
    #expect(
      Array(SHA256.hash(data: abc))
        == Self.bytes("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"))
    #expect(
      Array(SHA512.hash(data: abc))
        == Self.bytes(
          "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
            + "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f"))
    #expect(Array(Insecure.SHA1.hash(data: abc)) == Self.bytes("a9993e364706816aba3e25717850c26c9cd0d89d"))
    #expect(Array(Insecure.MD5.hash(data: abc)) == Self.bytes("900150983cd24fb0d6963f7d28e17f72"))
    #expect(
      Array(SHA256.hash(data: [UInt8]()))
        == Self.bytes("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"))
  }

  @Test func piecesMakeTheDigestOfTheWhole() {
    let all = (0..<10_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
    var running = SHA256()
    for start in stride(from: 0, to: all.count, by: 777) {
      running.update(data: all[start..<min(start + 777, all.count)])
    }
    #expect(running.finalize() == SHA256.hash(data: all))
    // What has no storage in one piece is read all the same.
    #expect(SHA256.hash(data: all.reversed()) == SHA256.hash(data: Array(all.reversed())))
  }

  @Test func aCopyGoesOnByItself() {
    var first = SHA256()
    first.update(data: Array("ab".utf8))
    var second = first
    first.update(data: Array("c".utf8))
    second.update(data: Array("d".utf8))
    let digest = first.finalize()
    #expect(digest == SHA256.hash(data: Array("abc".utf8)))
    #expect(second.finalize() == SHA256.hash(data: Array("abd".utf8)))
    // A digest ends nothing.
    first.update(data: [UInt8]())
    #expect(first.finalize() == digest)
  }

  @Test func codesUnderAKey() {
    // RFC 4231, test cases 1 and 2.
    let code = Array(
      HMAC<SHA256>.authenticationCode(
        for: Array("Hi There".utf8), using: SymmetricKey(data: [UInt8](repeating: 0x0b, count: 20))))
    #expect(code == Self.bytes("b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"))
    let key = SymmetricKey(data: Array("Jefe".utf8))
    let message = Array("what do ya want for nothing?".utf8)
    let second = Self.bytes("5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843")
    #expect(HMAC<SHA256>.isValidAuthenticationCode(second, authenticating: message, using: key))
    for place in second.indices {
      var altered = second
      altered[place] ^= 1
      #expect(!HMAC<SHA256>.isValidAuthenticationCode(altered, authenticating: message, using: key))
    }
    #expect(!HMAC<SHA256>.isValidAuthenticationCode([], authenticating: message, using: key))
  }

  @Test func keysMadeOfKeys() {
    // RFC 5869, A.1 and A.3: with salt and info, and without both.
    let key = SymmetricKey(data: [UInt8](repeating: 0x0b, count: 22))
    let first = HKDF<SHA256>.deriveKey(
      inputKeyMaterial: key, salt: Self.bytes("000102030405060708090a0b0c"), info: Self.bytes("f0f1f2f3f4f5f6f7f8f9"),
      outputByteCount: 42)
    let expected = "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865"
    #expect(Self.sight(of: first) == Self.sight(of: SymmetricKey(data: Self.bytes(expected))))
    let second = HKDF<SHA256>.deriveKey(
      inputKeyMaterial: key, salt: [UInt8](), info: [UInt8](), outputByteCount: 42)
    let bare = "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8"
    #expect(Self.sight(of: second) == Self.sight(of: SymmetricKey(data: Self.bytes(bare))))
  }

  @Test func encryptionThatShowsAlterations() throws {
    // Key, nonce and text of RFC 8439, 2.8.2. The tag there covers other data too; this one was worked out by an implementation in
    // another language, which gives the published tag with that data.
    let key = SymmetricKey(data: (0x80..<0xa0).map { UInt8($0) })
    let nonce = try ChaChaPoly.Nonce(data: Self.bytes("070000004041424344454647"))
    let text = Array(
      ("Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, sunscreen would be it.")
        .utf8)
    let box = try ChaChaPoly.seal(text, using: key, nonce: nonce)
    #expect(
      Array(box.ciphertext)
        == Self.bytes(
          "d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d63dbea45e8ca9671282fafb69da92728b"
            + "1a71de0a9e060b2905d6a5b67ecd3b3692ddbd7f2d778b8c9803aee328091b58fab324e4fad675945585808b4831d7bc"
            + "3ff4def08e4b7a9de576d26586cec64b6116"))
    #expect(Array(box.tag) == Self.bytes("6a23a4681fd59456aea1d29f82477216"))
    #expect(try Array(ChaChaPoly.open(box, using: key)) == text)
    for place in [0, 57, text.count - 1] {
      var altered = Array(box.ciphertext)
      altered[place] ^= 0x80
      let other = try ChaChaPoly.SealedBox(nonce: nonce, ciphertext: altered, tag: box.tag)
      #expect(throws: (any Error).self) { try ChaChaPoly.open(other, using: key) }
    }
    let short = try ChaChaPoly.SealedBox(nonce: nonce, ciphertext: box.ciphertext.dropLast(), tag: box.tag)
    #expect(throws: (any Error).self) { try ChaChaPoly.open(short, using: key) }
    let empty = try ChaChaPoly.seal([UInt8](), using: key, nonce: nonce)
    #expect(try Array(ChaChaPoly.open(empty, using: key)).isEmpty)
    #expect(throws: (any Error).self) { try ChaChaPoly.seal(text, using: SymmetricKey(data: [1, 2, 3]), nonce: nonce) }
    #expect(throws: (any Error).self) { try ChaChaPoly.Nonce(data: [1, 2, 3]) }
    #expect(throws: (any Error).self) { try ChaChaPoly.SealedBox(nonce: nonce, ciphertext: text, tag: [1]) }
  }

  @Test func secretsInCommon() throws {
    // RFC 7748, 5.2.
    let scalar = Self.bytes("a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4")
    let point = Self.bytes("e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c")
    let product = Self.bytes("c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552")
    let secret = try Curve25519.KeyAgreement.PrivateKey(rawRepresentation: scalar)
    let shared = try secret.sharedSecretFromKeyAgreement(with: .init(rawRepresentation: point))
    let key = shared.hkdfDerivedSymmetricKey(
      using: SHA256.self, salt: [1], sharedInfo: [2], outputByteCount: 32)
    let expected = HKDF<SHA256>.deriveKey(
      inputKeyMaterial: SymmetricKey(data: product), salt: [1], info: [2], outputByteCount: 32)
    #expect(Self.sight(of: key) == Self.sight(of: expected))
    #expect(Array(secret.rawRepresentation) == scalar)

    let (one, two) = (Curve25519.KeyAgreement.PrivateKey(), Curve25519.KeyAgreement.PrivateKey())
    #expect(one.publicKey.rawRepresentation != two.publicKey.rawRepresentation)
    let there = try one.sharedSecretFromKeyAgreement(with: two.publicKey)
    let back = try two.sharedSecretFromKeyAgreement(with: one.publicKey)
    let keys = [there, back].map {
      $0.hkdfDerivedSymmetricKey(using: SHA256.self, salt: [UInt8](), sharedInfo: [UInt8](), outputByteCount: 32)
    }
    #expect(Self.sight(of: keys[0]) == Self.sight(of: keys[1]))

    // Points of low order: 0, 1, and one of order 8 (RFC 7748, 6.1, asks for this check).
    for low in [
      String(repeating: "00", count: 32), "01" + String(repeating: "00", count: 31),
      "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
    ] {
      let other = try Curve25519.KeyAgreement.PublicKey(rawRepresentation: Self.bytes(low))
      #expect(throws: (any Error).self) { try secret.sharedSecretFromKeyAgreement(with: other) }
    }
    #expect(throws: (any Error).self) { try Curve25519.KeyAgreement.PrivateKey(rawRepresentation: [1, 2]) }
    #expect(throws: (any Error).self) { try Curve25519.KeyAgreement.PublicKey(rawRepresentation: [1, 2]) }
  }
}
