import Platform
import Testing

struct AgeKeyTests {
  @Test func keysAreWrittenAndRead() throws {
    let identity = AgeIdentity()
    #expect(identity.secretText.hasPrefix("AGE-SECRET-KEY-1"))
    let again = try AgeIdentity(identity.secretText)
    #expect(again.recipient == identity.recipient)
    let recipient = try AgeRecipient(identity.recipient.description)
    #expect(recipient == identity.recipient)
    let upper = try AgeRecipient(identity.recipient.description.uppercased())
    #expect(upper == recipient)
  }

  @Test func secretsAreNotPrinted() {
    let identity = AgeIdentity()
    var dumped = ""
    dump(identity, to: &dumped)
    for text in ["\(identity)", String(reflecting: identity), dumped] {
      #expect(!text.uppercased().contains("AGE-SECRET-KEY-1"))
      #expect(!text.isEmpty)
    }
  }

  @Test(arguments: [
    "", "age1", "age1dty5ve58r6k3dcrrq2fm8s33nfxkhuz93sm7v6t7amwh7q2683gq7qxur5",
    "age1dty5ve58r6k3dcrrq2fm8s33nfxkhuz93sm7v6t7amwh7q2683gq7qxur",
    "Age1dty5ve58r6k3dcrrq2fm8s33nfxkhuz93sm7v6t7amwh7q2683gq7qxur4", "ssh-ed25519 AAAA",
    "age1bty5ve58r6k3dcrrq2fm8s33nfxkhuz93sm7v6t7amwh7q2683gq7qxur4",
    "AGE-SECRET-KEY-1XVL086T3SRM2YJC770M0VLZAT3DSFHHR985GDS9MJJMY7WR73UQSDWLRX6",
  ])
  func whatIsNoRecipientIsRefused(_ text: String) {
    #expect(throws: FileError.self) { try AgeRecipient(text) }
  }

  @Test func aFileOfKeysSaysWhichLineIsWrong() throws {
    let identity = AgeIdentity()
    let good = "# mine\n\n\(identity.secretText)\n\(AgeIdentity().secretText)\r\n"
    let read = try AgeIdentity.identities(in: good)
    #expect(read.map(\.recipient).first == identity.recipient)
    #expect(read.count == 2)
    let error = #expect(throws: FileError.self) { try AgeIdentity.identities(in: "# a\n\(identity.recipient)\n") }
    #expect(error?.detail.contains("line 2") == true)
    #expect(throws: FileError.self) { try AgeIdentity.identities(in: "# nothing\n") }
  }
}
