import Foundation
import Lazaret

/// Opens a store as an app does at its start: `OpenStore STORE MODEL [HOME]`.
@main
struct OpenStore {
  static func main() async {
    let arguments = CommandLine.arguments.dropFirst().map { URL(fileURLWithPath: $0) }
    guard arguments.count == 2 || arguments.count == 3 else {
      print("OpenStore STORE MODEL [HOME]")
      exit(64)
    }
    do {
      let store = RecoverableStore(
        at: arguments[0], model: try StoreModel(contentsOf: arguments[1]),
        home: arguments.count == 3 ? arguments[2] : nil, appVersion: "1.0")
      let opening = try await store.open { progress in
        guard let fraction = progress.fraction else { return }
        print("\(progress.phase.rawValue) \(Int(fraction * 100)) %")
      }
      for event in opening.events { print(event.words) }
      if let notice = opening.notice { print("\(notice.title)\n\(notice.message)") }
      for loss in opening.losses { print("lost: \(loss.words)") }
      try await opening.waitForCheck()
      let condition = try await store.examine()
      print("\(condition.verdict.rawValue): \(opening.url.lastPathComponent)")
      for entity in condition.entities { print("  \(entity.name): \(entity.records.map(String.init) ?? "unknown")") }
    } catch let error as StoreError {
      print(error.description)
      exit(error.isEnvironmental ? 3 : 1)
    } catch {
      print("\(error)")
      exit(1)
    }
  }
}
