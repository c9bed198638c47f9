import ArgumentParser
import Commands
import Lazaret
import Platform
import SystemPackage
import TestSupport
import Testing

/// The help of every verb, as it stands in `Snapshots/`; `LAZARET_RECORD=1` writes them anew.
struct HelpTests {
  static let verbs: [[String]] = [
    [], ["open"], ["inspect"], ["model"], ["model", "show"], ["model", "hashes"], ["model", "diff"], ["model", "lint"],
    ["model", "verify"], ["model", "seal"], ["model", "freeze"], ["model", "export"], ["plan"], ["migrate"], ["repair"],
    ["damage"],
    ["serve"], ["salvage"],
    ["kit"],
    ["inbox"], ["inbox", "token"], ["inbox", "token", "new"], ["inbox", "token", "list"], ["inbox", "token", "revoke"],
    ["inbox", "prune"], ["inbox", "removed"], ["inbox", "batch"], ["inbox", "batch", "new"],
    ["inbox", "batch", "show"],
    ["kit", "create"],
    ["kit", "show"], ["quarantine"],
    ["quarantine", "list"],
    ["backup"], ["backup", "create"], ["backup", "list"], ["backup", "verify"],
    ["backup", "restore"], ["backup", "prune"], ["backup", "release"], ["backup", "undelete"],
    ["quarantine", "show"], ["quarantine", "add"], ["quarantine", "salvage"], ["quarantine", "release"],
    ["quarantine", "discard"], ["send"], ["outbox"], ["outbox", "list"], ["outbox", "send"], ["outbox", "retry"],
    ["outbox", "cancel"], ["outbox", "prune"],
    ["export"], ["key"], ["key", "new"], ["key", "public"], ["bundle"], ["bundle", "check"], ["bundle", "unpack"],
    ["licences"], ["work"],
  ]

  @Test(arguments: verbs)
  func helpIsWhatItWas(verb: [String]) throws {
    // The width is the terminal's; there is none here, so it is always the same.
    let result = try ChildProcess.run(ChildProcess.tool, verb + ["--help"])
    #expect(result.status == 0)
    #expect(result.errors.isEmpty)
    let name = (["lazaret"] + verb).joined(separator: "-") + ".txt"
    let path = RealMaterial.projectRoot.appending("Tests/CommandsTests/Snapshots").appending(name)
    if environment("LAZARET_RECORD") != nil {
      let file = try FileSystem().create(path, permissions: .init(rawValue: 0o644), truncating: true)
      try file.write(Array(result.output.utf8))
      return
    }
    let expected = String(decoding: try FileSystem().contents(of: path, limit: 1 << 20), as: UTF8.self)
    #expect(result.output == expected)
  }

  @Test(arguments: verbs)
  func helpTellsTheExitCodes(verb: [String]) throws {
    let output = try ChildProcess.run(ChildProcess.tool, verb + ["--help"]).output
    for code in ["0   ", "1   ", "2   ", "3   ", "64  "] { #expect(output.contains(code)) }
    // Only the lines of the parser's own lists may be longer than a terminal is wide.
    #expect(output.split(separator: "\n").allSatisfy { $0.count <= 100 }, "\(output)")
  }

  /// An option of the usage that the list of options lacks would be taken for another's, such as --version for the tool's own.
  @Test(arguments: verbs)
  func everyOptionOfTheUsageIsExplained(verb: [String]) throws {
    let lines = try ChildProcess.run(ChildProcess.tool, verb + ["--help"]).output.split(
      separator: "\n", omittingEmptySubsequences: false)
    let start = try #require(lines.firstIndex { $0.hasPrefix("USAGE: ") })
    let usage = lines[start...].prefix { !$0.isEmpty }.joined(separator: " ")
    let named = Set(usage.matches(of: /--[a-z][a-z-]*/).map { String($0.output) })
    let listed = lines.filter { $0.hasPrefix("  -") }.flatMap {
      $0.matches(of: /--[a-z][a-z-]*/).map { String($0.output) }
    }
    #expect(named.subtracting(listed).isEmpty, "\(verb)")
    // The tool's own options belong to no verb's usage.
    if !verb.isEmpty { #expect(!named.contains("--version"), "\(verb)") }
  }

  @Test func everyVerbHasASnapshot() {
    func names(_ command: any ParsableCommand.Type, _ path: [String]) -> [[String]] {
      [path] + command.configuration.subcommands.flatMap { names($0, path + [$0.configuration.commandName ?? ""]) }
    }
    let all = names(LazaretCommand.self, []).filter { !["demo", "inbox-worker", "manual"].contains($0.first) }
    #expect(Set(all) == Set(Self.verbs))
  }

  @Test func theVersionIsPrinted() throws {
    let result = try ChildProcess.run(ChildProcess.tool, ["--version"])
    #expect(result.status == 0)
    #expect(result.output == "\(LibraryVersion.current)\n")
  }
}
