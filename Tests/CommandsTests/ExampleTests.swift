import ArgumentParser
import Commands
import Foundation
import Platform
import SwiftModelSources
import SystemPackage
import TestSupport
import Testing

/// Every example of the README and of the help, run by a shell as it is written.
struct ExampleTests {
  /// A command line, and where it stands.
  struct Example: CustomTestStringConvertible {
    var command: String
    var place: String

    var testDescription: String { "\(place): \(command)" }
  }

  /// Examples that are run one after the other in one folder.
  struct Group: CustomTestStringConvertible {
    var place: String
    var commands: [String]

    var testDescription: String { place }
  }

  @Test("The commands in the README do what it says", arguments: readmeExamples())
  func readme(_ example: Example) throws { try run([example.command], of: example.place) }

  @Test("The examples in the help of every verb do what they say", arguments: helpExamples())
  func help(_ group: Group) throws { try run(group.commands, of: group.place) }

  @Test func theReadmeAndEveryVerbThatDoesSomethingHaveExamples() throws {
    #expect(Self.readmeExamples().count >= 30)
    let shown = Set(Self.helpExamples().map(\.place))
    // What they work on has a name that cannot be known beforehand.
    let exceptions: Set = [
      "lazaret outbox cancel", "lazaret outbox retry", "lazaret inbox batch new", "lazaret inbox batch show",
    ]
    for verb in Self.verbs(LazaretCommand.self, []) where verb.type.configuration.subcommands.isEmpty {
      let isThere = shown.contains(verb.name) || exceptions.contains(verb.name)
      #expect(isThere || !verb.type.configuration.shouldDisplay, "\(verb.name) has no example")
    }
  }

  @Test("No example is broken where help is fitted into 80 columns") func examplesFit() {
    for group in Self.helpExamples() {
      for command in group.commands {
        for line in command.split(separator: "\n") { #expect(line.count <= 76, "\(line)") }
      }
    }
  }

  // MARK: Finding them

  private static func verbs(
    _ command: any ParsableCommand.Type, _ path: [String]
  ) -> [(name: String, type: any ParsableCommand.Type)] {
    let path = path + [command.configuration.commandName ?? ""]
    return [(path.joined(separator: " "), command)]
      + command.configuration.subcommands.flatMap { verbs($0, path) }
  }

  /// The lines under EXAMPLE of every verb's help, before it is fitted into a terminal; a backslash goes on in the next line.
  static func helpExamples() -> [Group] {
    verbs(LazaretCommand.self, []).compactMap { name, type in
      var isInside = false
      var commands: [String] = []
      for line in type.configuration.discussion.split(separator: "\n", omittingEmptySubsequences: false) {
        if line == "EXAMPLE" || line == "EXAMPLES" {
          isInside = true
        } else if isInside, line.hasPrefix("  ") {
          let text = line.drop { $0 == " " }
          if commands.last?.hasSuffix("\\") == true {
            commands[commands.count - 1] += "\n" + text
          } else {
            commands.append(String(text))
          }
        } else {
          isInside = false
        }
      }
      return commands.isEmpty ? nil : Group(place: name, commands: commands)
    }
  }

  /// The command lines of the README's shell blocks, without what is said of them behind a number sign.
  static func readmeExamples() -> [Example] {
    let path = RealMaterial.projectRoot.appending("README.md")
    guard let bytes = try? FileSystem().contents(of: path, limit: 1 << 20) else { return [] }
    var isInside = false
    var examples: [Example] = []
    for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false) {
      if line.hasPrefix("```") {
        isInside = line == "```sh"
      } else if isInside, line.hasPrefix("lazaret ") {
        let command = line.range(of: " #").map { line[..<$0.lowerBound] } ?? line
        examples.append(Example(command: command.trimmingCharacters(in: .whitespaces), place: "README"))
      }
    }
    return examples
  }

  // MARK: Running them

  private func run(_ commands: [String], of place: String) throws {
    let scene = try ExampleScene()
    // What an example makes is there for the examples that begin with it.
    for path in Set(commands.flatMap(Self.outputs)) where try scene.contains(path) {
      try FileManager.default.removeItem(atPath: scene.folder.appending(path).string)
    }
    for command in commands {
      let needsSources = ["Sources/Models", "model.lock", "model freeze"].contains { command.contains($0) }
      if needsSources, !SwiftSources.isAvailable { continue }
      if command.contains("postgresql://") {
        // There is no such server: it says that, and nothing is wrong with the command line.
        let result = try scene.run(command, input: "")
        #expect(result.status == 3, "\(command): \(result.status)\n\(result.errors)")
        #expect(result.errors.contains("database"), "\(command): \(result.errors)")
        continue
      }
      if command.hasPrefix("lazaret serve") {
        try serve(command, in: scene)
        continue
      }
      let result = try scene.run(command, input: "y\n")
      // 2 where the output says that something is doubtful or would change; never what a mistake ends with.
      let isDone = result.status == 0 || result.status == 2
      #expect(isDone, "\(place): \(command): \(result.status)\n\(result.errors)\n\(result.output)")
      #expect(!result.errors.contains("lazaret: cannot"), "\(command): \(result.errors)")
      for path in Self.outputs(of: command) {
        #expect(try scene.contains(path), "\(command) did not write \(path)")
      }
    }
  }

  /// The paths that a command is to write.
  private static func outputs(of command: String) -> [String] {
    let words = command.split(whereSeparator: { " \n\\".contains($0) }).map(String.init)
    return zip(words, words.dropFirst()).compactMap { option, path in
      ["-o", "--output", "--to", "--junit"].contains(option) && path != "." && path.contains(".")
        && !path.contains(":") ? path : nil
    }
  }

  /// What serves goes on until Ctrl-C; its port is one that is free.
  private func serve(_ command: String, in scene: ExampleScene) throws {
    let process = try scene.start(command + " --port 0 --no-browser")
    #expect(try process.waits(for: "Ctrl-C ends it."), "\(command)")
    let output = try process.output()
    #expect(output.contains(command.contains("--proxy") ? "https://support.example.com/" : "http://127.0.0.1:"))
    #expect(output.contains("/inbox --token-file") == command.contains("--inbox"), "\(output)")
    process.interrupt()
    #expect(try process.finish().status == 0)
  }
}
