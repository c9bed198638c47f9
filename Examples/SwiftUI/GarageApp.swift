import CoreData
import Lazaret
import SwiftUI

// Never compiled: Core Data and SwiftUI do not exist on Linux, where the library is built.

/// The app's store in its application support folder.
func garageStore() throws -> RecoverableStore {
  let folder = try FileManager.default.url(
    for: .applicationSupportDirectory, in: .userDomainMask, appropriateFor: nil, create: true)
  guard let model = Bundle.main.url(forResource: "Garage", withExtension: "momd") else {
    throw CocoaError(.fileNoSuchFile)
  }
  return RecoverableStore(
    at: folder.appendingPathComponent("Garage.sqlite"), model: try StoreModel(contentsOf: model),
    home: folder.appendingPathComponent("Recovery"), appVersion: "2.3")
}

/// Loads the app's container.
@MainActor
func loadGarage(progress: @escaping StoreProgress.Handler) async throws -> (NSPersistentContainer, Notice?) {
  let container = NSPersistentContainer(name: "Garage")
  let opening = try await container.loadPersistentStores(recovering: try garageStore(), progress: progress)
  return (container, opening.notice)
}

/// An app whose first screen loads its container.
@main
struct GarageApp: App {
  var body: some Scene {
    WindowGroup { GarageStart() }
  }
}

/// The first screen: the app's views once the store is ready.
struct GarageStart: View {
  @State private var container: NSPersistentContainer?
  @State private var notice: Notice?
  @State private var failure: StoreError?
  @State private var fraction = 0.0
  @Environment(\.openURL) private var openURL

  var body: some View {
    if let container {
      Text("The garage is open.")
        .environment(\.managedObjectContext, container.viewContext)
        .modifier(NoticeAlert(notice: $notice, perform: perform))
    } else if let failure {
      StoreFailure(error: failure) { self.failure = nil }
    } else {
      ProgressView(value: fraction).task { await load() }
    }
  }

  private func load() async {
    do {
      let loaded = try await loadGarage { progress in
        Task { @MainActor in fraction = progress.fraction ?? fraction }
      }
      (container, notice) = (loaded.0, loaded.1)
    } catch let error as StoreError {
      failure = error
    } catch {
      // Cancelled, or Core Data could not load a store that is sound: an app would say so here.
    }
  }

  private func perform(_ action: Notice.Action) {
    guard action.key == "lazaret.action.contact-support", let url = URL(string: "mailto:support@example.com") else {
      return
    }
    openURL(url)
  }
}
