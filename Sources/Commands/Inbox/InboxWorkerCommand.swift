import ArgumentParser
import Foundation
import Inbox
import Lazaret

/// `lazaret inbox-worker`: one job of an inbox, done by a process that limits itself first; started by `serve --inbox` alone.
struct InboxWorkerCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "inbox-worker", abstract: "Does one job of an inbox.", shouldDisplay: false)

  @Argument(help: "The file with the order.")
  var order: PathArgument

  func run() throws {
    try report(json: true) {
      let fileSystem = FileSystem()
      let bytes = try fileSystem.contents(of: order.path, limit: 1 << 20)
      let order = try JSONDecoder().decode(WorkOrder.self, from: Data(bytes))
      try order.resources.apply()
      Self.endWithItsMaster()
      let result = BundleWork(order).run()
      guard let path = order.result.path else { throw ExitStatus.failed }
      try fileSystem.writeAtomically(
        [UInt8](try JSONEncoder().encode(result)), to: path, replacing: true, permissions: .ownerReadWrite)
    }
  }

  /// The process that started this one holds its input open: when that ends, the result is not waited for.
  private static func endWithItsMaster() {
    let thread = Thread {
      while true {
        do {
          guard let bytes = try FileHandle.standardInput.read(upToCount: 4096), !bytes.isEmpty else { _exit(1) }
        } catch {
          // A signal interrupted it.
          Thread.sleep(forTimeInterval: 0.05)
        }
      }
    }
    thread.name = "lazaret.master"
    thread.start()
  }
}
