import Lazaret
import SwiftUI

// Never compiled: SwiftUI does not exist on Linux, where the library is built.

/// Shows once what became of the user's data.
struct NoticeAlert: ViewModifier {
  @Binding var notice: Notice?
  var perform: (Notice.Action) -> Void

  func body(content: Content) -> some View {
    let words = notice.map { notice in Notice.Language().map(notice.translated(into:)) ?? notice }
    content.alert(words?.title ?? "", isPresented: Binding(get: { notice != nil }, set: { _ in notice = nil })) {
      ForEach(words?.actions ?? [], id: \.key) { action in Button(action.title) { perform(action) } }
    } message: {
      Text(words?.message ?? "")
    }
  }
}

/// Says why a store cannot be opened, and offers to try again.
struct StoreFailure: View {
  let error: StoreError
  var tryAgain: () -> Void

  var body: some View {
    // Where the environment is at fault, nothing is wrong with the data.
    let title = error.isEnvironmental ? "Your data cannot be opened now" : "Your data cannot be opened"
    ContentUnavailableView {
      Label(title, systemImage: "externaldrive.badge.exclamationmark")
    } description: {
      Text(error.hint)
    } actions: {
      Button("Try Again", action: tryAgain)
    }
  }
}
