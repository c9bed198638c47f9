import ArgumentParser
import Lazaret

struct DemoCommand: ParsableCommand {
  static let configuration = CommandConfiguration(commandName: "demo", abstract: "x")
}
