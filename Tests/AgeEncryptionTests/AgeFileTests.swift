import Platform
import Testing

/// Seals and opens in pieces of a size.
private func seal(
  _ content: [UInt8], to recipients: [AgeRecipient], piece: Int = 10_000, armored: Bool = false
) throws -> [UInt8] {
  var sealer = try AgeSealer(to: recipients, armored: armored)
  var file: [UInt8] = []
  for start in stride(from: 0, to: content.count, by: piece) {
    file += try sealer.seal(content[start..<min(start + piece, content.count)])
  }
  return file + (try sealer.finish())
}

private func open(_ file: [UInt8], with identities: [AgeIdentity], piece: Int = 7001) throws -> [UInt8] {
  var opener = AgeOpener(with: identities)
  var content: [UInt8] = []
  for start in stride(from: 0, to: file.count, by: piece) {
    content += try opener.open(file[start..<min(start + piece, file.count)])
  }
  return content + (try opener.finish())
}

private func failure(_ file: [UInt8], with identities: [AgeIdentity], piece: Int = 7001) -> FileError.Kind? {
  do {
    _ = try open(file, with: identities, piece: piece)
    return nil
  } catch {
    return (error as? FileError)?.kind
  }
}

private func bytes(_ count: Int, seed: UInt64) -> [UInt8] {
  var generator = SeededGenerator(seed: seed)
  return (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
}

struct AgeFileTests {
  @Test(arguments: [0, 1, 65_535, 65_536, 65_537, 131_072, 200_000])
  func everyLengthComesBack(_ count: Int) throws {
    let content = bytes(count, seed: UInt64(count))
    let (first, second) = (AgeIdentity(), AgeIdentity())
    for armored in [false, true] {
      let file = try seal(content, to: [first.recipient, second.recipient], armored: armored)
      #expect(AgeOpener.isAge(file))
      for piece in [1_000_000, 65_536, 613] {
        let opened = try open(file, with: [second], piece: piece)
        #expect(opened == content)
      }
      let other = failure(file, with: [AgeIdentity()])
      #expect(other == .ageNoIdentity)
    }
  }

  /// Made with age 1.1.1, and its key with age-keygen, for two recipients.
  @Test func aFileThatAgeWroteIsOpened() throws {
    let identities = try AgeIdentity.identities(
      in: """
        # created: 2026-11-21T18:30:40Z
        # public key: age1dty5ve58r6k3dcrrq2fm8s33nfxkhuz93sm7v6t7amwh7q2683gq7qxur4
        AGE-SECRET-KEY-1XVL086T3SRM2YJC770M0VLZAT3DSFHHR985GDS9MJJMY7WR73UQSDWLRX6

        """)
    #expect(
      identities.first?.recipient.description == "age1dty5ve58r6k3dcrrq2fm8s33nfxkhuz93sm7v6t7amwh7q2683gq7qxur4")
    let opened = try open(Array(Self.recorded.utf8), with: identities)
    #expect(String(decoding: opened, as: UTF8.self) == "A store that would not open.\n")
    let crlf = Self.recorded.replacing("\n", with: "\r\n")
    let again = try open(Array("\n \n".utf8) + Array(crlf.utf8) + Array(" \n".utf8), with: identities, piece: 5)
    #expect(again == opened)
  }

  private static let recorded = """
    -----BEGIN AGE ENCRYPTED FILE-----
    YWdlLWVuY3J5cHRpb24ub3JnL3YxCi0+IFgyNTUxOSBYenJnN3lNUW1aUlJkWHpi
    dUQrdEtmaW5JMU1XL0RGaEcrQTVJUndFcFhvCnlNWjI1R1NYVHpYTFY4MVFkVTlG
    Y3pOQTgvT1lDc01MTGpsdFhiUjQzL3MKLT4gWDI1NTE5IG0rSnIxb1IzT3JVSTc1
    czJqdXNrUEtXbWpPcjFCc1VUNGNKeVR4VTNnbmMKaS9xd2VZRUhxN01HV1hnSlp0
    SkNGc2JUTkhLWGRXaG9Id2puNiszdDJodwotLS0gSnkzeHQ4bUJsRitRck03VndH
    ejhqeTFyTzE2Zk5WN3NKUGZycmlDYzV1awqs0UCn//W3GLrTxDi4T6BW2DpMBsOQ
    QzWKQ8FqzN6R7Uea/uHEieWNFi5oqglxKGmQAg2f9oqHYA+87Gwn
    -----END AGE ENCRYPTED FILE-----

    """

  @Test(arguments: [11, 65_536, 70_000])
  func whatWasAlteredOrCutOffIsRefused(_ count: Int) throws {
    let identity = AgeIdentity()
    let file = try seal(bytes(count, seed: 5), to: [identity.recipient])
    for position in stride(from: 0, to: file.count, by: count < 100 ? 1 : 611) {
      var altered = file
      altered[position] ^= 1
      let altering = failure(altered, with: [identity])
      #expect(altering != nil, "byte \(position) was altered")
      let cutting = failure(Array(file.prefix(position)), with: [identity])
      #expect(cutting != nil, "cut off at \(position)")
    }
    let longer = failure(file + [0], with: [identity])
    #expect(longer == .agePayload)
    let twice = failure(file + file, with: [identity])
    #expect(twice == .agePayload)
  }

  @Test func armourIsReadStrictly() throws {
    let identity = AgeIdentity()
    let file = try seal(bytes(500, seed: 9), to: [identity.recipient], armored: true)
    let text = String(decoding: file, as: UTF8.self)
    let lines = text.split(separator: "\n").map(String.init)
    let bad = [
      text + "more\n", text.replacing("-----END AGE", with: "----END AGE"),
      lines.dropLast().joined(separator: "\n") + "\n",
      ([lines[0], ""] + lines.dropFirst()).joined(separator: "\n") + "\n",
      ([lines[0], "AAAA"] + lines.dropFirst()).joined(separator: "\n") + "\n",
      ([lines[0], lines[1] + lines[2]] + lines.dropFirst(3)).joined(separator: "\n") + "\n",
      text.replacing(lines[2], with: lines[2].dropLast() + "*"), String(repeating: " ", count: 2000) + text,
    ]
    for (index, text) in bad.enumerated() {
      let kind = failure(Array(text.utf8), with: [identity])
      #expect(kind == .ageArmor || kind == .ageHeader, "case \(index)")
    }
  }

  @Test func hugeHeadersAreRefusedEarly() throws {
    let identity = AgeIdentity()
    let stanza = "-> grease x\n\n"
    let many = Array(("age-encryption.org/v1\n" + String(repeating: stanza, count: 5000)).utf8)
    #expect(failure(many, with: [identity]) == .ageHeaderTooLarge)
    let long = Array(("age-encryption.org/v1\n-> " + String(repeating: "x", count: 400_000)).utf8)
    #expect(failure(long, with: [identity]) == .ageHeaderTooLarge)
    #expect(failure(Array("age-encryption.org/v2\n".utf8) + [0], with: [identity]) == .ageHeader)
    #expect(failure(Array("age-encryption.org/v1\n--- \n".utf8), with: [identity]) == .ageHeader)
    #expect(failure([], with: [identity]) == .ageHeader)
    #expect(throws: FileError.self) { try AgeSealer(to: []) }
    #expect(throws: FileError.self) {
      try AgeSealer(to: Array(repeating: identity.recipient, count: 2000))
    }
  }

  @Test func mutatedFilesNeverCrash() throws {
    let identity = AgeIdentity()
    let files = try [false, true].map { try seal(bytes(90_000, seed: 3), to: [identity.recipient], armored: $0) }
    var generator = SeededGenerator(seed: 77)
    for round in 0..<200 {
      var file = files[round % 2]
      for _ in 0..<Int.random(in: 1...4, using: &generator) {
        let position = Int.random(in: 0..<min(file.count, 400), using: &generator)
        file[position] = UInt8.random(in: 0...255, using: &generator)
      }
      if let opened = try? open(file, with: [identity]) { #expect(opened == bytes(90_000, seed: 3)) }
    }
  }
}
