import Commands
import Foundation
import Platform
import SystemPackage
import TestSupport
import Testing

/// The manual's pages, which are made from the help.
struct ManualTests {
  private let folder: TemporaryFolder
  private let pages: [String: String]

  init() throws {
    folder = try TemporaryFolder()
    let result = try ChildProcess.run(ChildProcess.tool, ["manual", "--into", folder.appending("man1").string])
    try #require(result.status == 0, "\(result.errors)")
    var pages: [String: String] = [:]
    for name in try FileSystem().entries(of: folder.appending("man1")) {
      let bytes = try FileSystem().contents(of: folder.appending("man1").appending(name), limit: 1 << 20)
      pages[name.string] = String(decoding: bytes, as: UTF8.self)
    }
    self.pages = pages
  }

  /// What a reader sees of escaped text.
  private func read(_ text: String) -> String {
    text.replacingOccurrences(of: "\\-", with: "-").replacingOccurrences(of: "\\fB", with: "")
      .replacingOccurrences(of: "\\fI", with: "").replacingOccurrences(of: "\\fR", with: "")
  }

  @Test func everyVerbOfTheHelpHasAPage() {
    let expected = (HelpTests.verbs + [["demo"]]).map { (["lazaret"] + $0).joined(separator: "-") + ".1" }
    #expect(Set(pages.keys) == Set(expected))
  }

  @Test(arguments: [["salvage"], ["backup", "prune"], ["serve"], ["export"], ["quarantine"]])
  func thePageSaysWhatTheHelpSays(verb: [String]) throws {
    let help = try ChildProcess.run(ChildProcess.tool, verb + ["--help"]).output
    let page = read(try #require(pages[(["lazaret"] + verb).joined(separator: "-") + ".1"]))
    let names = help.split { $0 == " " || $0 == "\n" || $0 == "," }.filter { $0.hasPrefix("--") }
    #expect(names.count >= 2)
    for name in names { #expect(page.contains(name), "\(name)") }
    for code in ["0", "1", "2", "3", "64"] { #expect(page.contains(".TP\n\(code)\n"), "\(code)") }
    for heading in ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "SEE ALSO"] {
      #expect(page.contains(".SH \"\(heading)\"\n"), "\(heading)")
    }
  }

  @Test func aGroupLeadsToItsVerbsAndAVerbToItsGroup() throws {
    let group = read(try #require(pages["lazaret-backup.1"]))
    let verb = read(try #require(pages["lazaret-backup-prune.1"]))
    #expect(group.contains("lazaret-backup-prune(1)\n"))
    #expect(verb.contains("lazaret(1), lazaret-backup(1)\n"))
    #expect(verb.contains(".SS \"Rules\"\n"))
    #expect(verb.contains("\nlazaret-backup-prune - "))
  }

  @Test func hiddenVerbsAreNotTold() {
    for (name, text) in pages {
      #expect(!text.contains("inbox\\-worker"), "\(name)")
      #expect(!text.contains("lazaret\\-manual"), "\(name)")
    }
  }

  @Test func theSameProgramWritesTheSamePages() throws {
    let again = folder.appending("again")
    _ = try ChildProcess.run(ChildProcess.tool, ["manual", "--into", again.string])
    for (name, text) in pages {
      let bytes = try FileSystem().contents(of: again.appending(name), limit: 1 << 20)
      #expect(String(decoding: bytes, as: UTF8.self) == text, "\(name)")
      #expect(text.utf8.allSatisfy { $0 < 0x80 }, "\(name)")
    }
  }

  @Test(.enabled(if: ChildProcess.exists("groff"), "groff is not on this machine"))
  func groffReadsEveryPageWithoutAWarning() throws {
    for name in pages.keys.sorted() {
      let result = try ChildProcess.run(
        "groff", ["-man", "-ww", "-Tutf8", folder.appending("man1").appending(name).string])
      #expect(result.status == 0)
      #expect(result.errors.isEmpty, "\(name): \(result.errors)")
    }
  }

  @Test func whatHasAMeaningInAPageIsEscaped() {
    #expect(Roff.escaped(#"a\b-c'd"e"#) == #"a\eb\-c\(aqd\(dqe"#)
    #expect(Roff.escaped("age1… –") == #"age1\[u2026] \[u2013]"#)
    #expect(Roff.escaped("\u{1F600}") == #"\[u1F600]"#)
    var roff = Roff()
    roff.request("SH", "A \"B\"")
    roff.lines(".hidden is no request\n'nor is this")
    roff.verbatim("  kept")
    #expect(roff.text == ".SH \"A \\(dqB\\(dq\"\n\\&.hidden is no request\n\\(aqnor is this\n  kept\n")
  }
}
