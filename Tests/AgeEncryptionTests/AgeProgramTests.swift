import Platform
import SystemPackage
import TestSupport
import Testing

/// Against the program `age` itself, where it is installed.
@Suite(.enabled(if: ChildProcess.exists("age"), "the program age is not installed"))
struct AgeProgramTests {
  @Test(arguments: [0, 29, 65_536, 300_000], [false, true])
  func bothWays(_ count: Int, armored: Bool) throws {
    let folder = try TemporaryFolder()
    var generator = SeededGenerator(seed: UInt64(count))
    let content = (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
    let plain = try folder.write(content, to: "plain")
    let (first, second) = (AgeIdentity(), AgeIdentity())
    let key = try folder.write(second.secretText + "\n", to: "key.txt")

    var sealer = try AgeSealer(to: [first.recipient, second.recipient], armored: armored)
    let sealed = try sealer.seal(content) + sealer.finish()
    let ours = try folder.write(sealed, to: "ours.age")
    let opened = folder.appending("opened")
    // By the shell, since age does not create a file for nothing.
    let opening = try ChildProcess.run(
      "sh", ["-c", "age -d -i \"$1\" \"$2\" > \"$3\"", "sh", key.string, ours.string, opened.string])
    #expect(opening.status == 0, "\(opening.errors)")
    let file = try FileSystem().contents(of: opened, limit: 1 << 20)
    #expect(file == content)

    let theirs = folder.appending("theirs.age")
    let arguments = ["-r", first.recipient.description, "-r", second.recipient.description, "-o", theirs.string]
    let sealing = try ChildProcess.run("age", arguments + (armored ? ["-a"] : []) + [plain.string])
    #expect(sealing.status == 0, "\(sealing.errors)")
    var opener = AgeOpener(with: [second])
    let back = try opener.open(try FileSystem().contents(of: theirs, limit: 1 << 20)) + opener.finish()
    #expect(back == content)
  }
}
